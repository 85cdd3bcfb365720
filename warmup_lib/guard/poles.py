"""Words that turn a question into its opposite, by pole; one list a pole over all languages.

Of two opposites only the one that is rarer in questions is listed where people leave the other one
out as often as they say it: "[open] an account", "[increase] my limit". A question that says
neither then fits the usual one, which costs half the misses and keeps the opposites apart.

`word` is a whole word, `stem*` begins one. Accents are left out (`eteindre`, `offnen`), as the
reader of these lists leaves them out too. Not listed are words that mean something else in another
of the languages, such as the German "nach" (after, to) and the Spanish "sub*" (raise).
"""

from __future__ import annotations

POLES = {
    "on": """
        enabl* activat* reactivat* aktivier* einschalt* anschalt* anmach* habilit* encend* encien*
        activar* active actives activez activo activer reactiv* allum* attiv* accend* ativar ative
        ativo""",
    "off": """
        off disabl* deactivat* deaktivier* ausschalt* ausgeschaltet abschalt* abgeschaltet ausmach*
        desactiv* apag* eteind* etein* disattiv* spegn* desativ* deslig* deshabilit* desabilit*
        inhabilit*""",
    "unlock": """
        unlock* unfreez* unfroz* unblock* entsperr* freischalt* freigeschaltet desbloqu* debloqu*
        deverrouill* sblocc* descongel* degel*""",
    "less": """
        decreas* reduc* lower* downgrad* senk* verringer* reduzier* reduz* baj* diminu* baiss*
        abbass* abaix* ridur* ridu*""",
    "un": """
        imposs* imposib* inaccura* inactiv* inattiv* inativ* incomplet* incorrect* incorrett*
        incorret* insufficient* insuficient* insuffisant* invalid* illegal* illegit* illimit*
        illogi* irregul* irrelev* irrevers* irrevoc* insecur* inadequa* inappropri* ineligib*
        ineffect* inedib* invisib* inaccess* inaudib* incapab* incompatib* inconsist* inflexib*
        nonrefund* nontax* nontransfer* indirect* improper* imperfect* impract* immatur*
        immateri* dissatisf*
        disallow* disapprov* disagree* disadvant* dislik* disregard* distrust* disqualif*""",
    "fail": "fail* misslung* misslang* gescheitert scheiter* fracas* echou* echec* fallit*",
    "stop": "stop stops stopped stopping aufhor* aufgehort dejo dejar cess*",
    "avoid": "avoid* prevent* vermeid* verhinder* evit*",
    "except": "except* exclud* excepto salvo ausser ausgenommen sauf eccetto exceto",
    "lack": "lack lacks lacking lacked mangel* carec* manqu* manca*",
    "few": "few several mehrere wenige pocos pocas varios varias plusieurs diversi alcuni",
    "disposable": "disposab* einweg* desechab* jetab* monouso descartav*",
    "before": "before bevor vorher vor antes avant beforehand prima",
    "sell": """
        sell sells selling sold verkauf* vender* vendo vende vendi vendre vends vendu vente ventes
        vendit*""",
    "close": """
        close closes closed closing closure schliess* geschlossen cerr* ferm* chiud* chius* fech*
        auflos*""",
    "credit": "credit* kredit* credito gutschr*",
    "debit": "debit* lastschrift*",
    "out": "outgo* outbound ausgehend* salient* sortant* uscita",
    "take_out": """
        withdr* abheb* abgehoben auszahl* ausgezahlt retir* retrait* preliev* prelev* levantar*
        levantament* sacar saque*""",
    "log_out": "logout signout abmeld* ausgeloggt ausloggen deconnexion",
    "cancel": """
        cancel* cancell* stornier* storno kundig* gekundigt annul* annull* revok* widerruf*
        remov* delet* losch* geloscht entfern* elimin* borr* supprim* rimuov* exclui*""",
    "decline": "declin* reject* refus* ablehn* abgelehnt rechaz* rifiut* recus*",
    "download": "download* herunterlad* heruntergeladen telecharg* descarg* scaric* baixar",
    "export": "export* esport*",
    "uninstall": "uninstall* deinstallier* desinstal* disinstall*",
    "disconnect": "disconnect* unlink* desconect* deconnect* disconnett* scolleg*",
    "unsubscribe": "unsubscrib* abbestell* desabonn* disiscri*",
    "decrypt": "decrypt* entschlussel*",
    "descending": "descend* absteigend*",
    "minimum": "minimum minimal* minimo minima lowest smallest",
    "departure": "depart departs departed departing departure* abflug abfahrt* abreise",
    "virtual": "virtual* virtuel* virtuell*",
    "domestic": "domestic* inland*",
    "left": "left gauche* izquierd* sinistr* esquerd*",
    "right": "rechts rechte rechten rechter rechtes",
    "old": """
        old older oldest earliest alt alte altem alten altes altest* viejo viejos vieja viejas
        antigu* vieux vieil* vecchi* velho velha velhos velhas""",
    "young": """
        young younger youngest jung junge jungen junger junges jungere* jungst* jeune* joven jovenes
        jovem jovens giovan*""",
    "forbidden": """
        forbid* forbad* prohibit* ban bans banned banning verbot* verbiet* prohib* interdit* vietat*
        proib*""",
    "decode": "decod* dekod* descodif* decodif*",
    "decompress": "decompress* uncompress* unzip unzips unpack* entpack* descomprim* descompac*",
    "cold": "cold colder coldest kalt* frio frios fria frias froid* fredd*",
    "down": "down downward downwards runter herunter hinunter hinab abajo",
    "slow": "slow slows slower slowest slowly slowed langsam* lento lenta lentos lentas lentement",
    "lend": "lend lends lent lending verleih* verliehen",
    "hide": """
        hide hides hid hidden hiding ausblend* ausgeblendet versteck* ocult* masquer masque masques
        masquez nascond* escond*""",
    "found": "found gefunden encontrado encontrada trovato trovata",
    "remember": "remember* erinner*",
    "false": "false falsch* falso falsa falsos falsas faux fausse*",
    "win": "win wins won winning winner winners gewinn* gewonnen",
    "gain": "gain gains gained gaining zunehm* zugenommen",
    "hire": "hire hires hired hiring einstellen",
    "leave": "leave leaves leaving verlass*",
    "expensive": """
        expensiv* costly pricey teuer* teure* caro cara caros caras cher chers chere cheres""",
    "paid_for": "kostenpflicht* payant*",
    "absent": "absent* absence* abwesen* ausent* assente* assenza",
    "married": "married verheirat* casado casada casados casadas sposat*",
    "private": "private privat* privad* prive privee prives privees",
    "vertical": "vertic* vertik*",
    "column": "column columns spalte spalten columna* colonne colonna coluna*",
    "minor": "minors underage minderjahrig*",
    "wife": "wife wives ehefrau ehefrauen esposa*",
    "daughter": "daughter daughters tochter hija hijas fille filles figlia figlie filha filhas",
    "mother": "mother mothers mum mom mutter madre madres mere meres mamma mae",
    "father": "father fathers dad vater padre padres pere peres papa pai",
    "sister": "sister sisters schwester schwestern hermana* soeur* sorella sorelle irma",
    "against": "against gegen contra contre contro",
    "outside": "outside ausserhalb fuera dehors fuori fora",
    "bottom": "bottom",
    "short": "short shorter shortest kurz kurze* corto corta cortos cortas court courte* brev*",
    "small": """
        small smaller klein* pequen* petit petite petits petites piccol*""",
    "worse": "worse worst schlecht* schlimm* peor peores mauvais* pire pires peggio* pior piores",
    "dark": "dark darker dunkel* dunkl* oscur* sombre sombres scuro scura escuro escura",
    "dry": "dry trocken*",
    "empty": "empty leer* vacio* vacia* vide vides vuot* vazi*",
    "difficult": "difficult* schwierig* dificil* difficile*",
    "extern": "external extern* esterno esterna",
    "output": "output outputs ausgabe ausgaben",
    "backend": "backend",
    "offline": "offline",
    "negative": "negativ*",
    "wireless": "wireless kabellos* drahtlos* inalambric*",
    "coming": """
        next tomorrow morgen ubermorgen nachst* manana demain domani amanha proxim* prochain*
        prossim*""",
}

# Two of these in one text are told apart by their order too: who sends whom money.
KIN = frozenset(f"-{pole}" for pole in ("daughter", "father", "mother", "sister", "wife"))

# One list a pole for Chinese and Japanese, which have no spaces: looked for anywhere in a text.
HAN_KANA = {
    "on": "打开 开启 启用 激活 开通 オン 有効",
    "off": "关闭 关掉 停用 禁用 オフ 無効",
    "unlock": "解冻 解锁 解除冻结 ロック解除 ロックを解除 凍結解除 凍結を解除 アンロック",
    "less": "减少 降低 下调 减小 調低 減ら 引き下げ 下げ",
    "before": "之前 以前 の前 前に",
    "sell": "出售 卖 販売 売",
    "close": "销户 口座を閉",
    "credit": "信用卡 贷记 クレジット",
    "debit": "借记 デビット",
    "out": "转出 支出 出金",
    "take_out": "提现 取款 取钱 取出 引き出",
    "log_out": "登出 退出登录 注销 ログアウト",
    "cancel": "取消 退订 终止 删除 移除 去掉 取り消 キャンセル 中止 解約 削除",
    "decline": "拒绝 拒否",
    "download": "下载 ダウンロード",
    "export": "导出 エクスポート",
    "uninstall": "卸载 アンインストール",
    "decrypt": "解密 復号",
    "descending": "降序 降順",
    "minimum": "最小 最低 最少",
    "left": "左",
    "right": "右",
    "old": "最早 最旧 最古 古い",
    "young": "年轻 若い",
    "forbidden": "禁止 不准 不许",
    "decode": "解码 デコード",
    "decompress": "解压 解凍",
    "cold": "寒い 冷たい",
    "slow": "慢 遅い",
    "hide": "隐藏 非表示",
    "expensive": "昂贵 高い",
    "private": "私人 私有 非公開",
    "vertical": "垂直 縦",
    "small": "小さい",
    "outside": "外面 外側",
    "coming": "明天 后天 下周 下个 下次 下月 明年 明日 来週 来月 次回",
}

# A word of the first list together with one of the second, wherever both stand in a text.
PHRASES = {
    "request_money": ("request requests requested requesting", "money geld dinero"),
    "odd": (
        "odd ungerade ungeraden impar impares impair impairs dispari",
        "even gerade number numbers zahl zahlen numero numeros nombre nombres numeri row rows",
    ),
    "sunset": ("sun sonne", "set sets setting unter untergeht"),
    "off": ("schalte schalt mach stell stelle", "aus ab"),
    "log_out": ("log logged logging sign signed signing opt melde", "out ab"),
}
