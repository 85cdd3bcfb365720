"""Names of places, days, currencies, numbers and products, each with the word that stands for it.

A line is `id: names`, over all languages, lower case, without accents. Only what people write
without a capital is needed here, or what is written in several ways; other names are told by their
capital (`names`). Left out are names that are also common words, such as "may", "mar" and "sun".
"""

from __future__ import annotations

THINGS = """
d1: monday montag lunes lundi lunedi segunda 月曜
d2: tuesday tue dienstag martes mardi martedi terca 火曜
d3: wednesday wed mittwoch miercoles mercredi mercoledi quarta 水曜
d4: thursday thu thurs donnerstag jueves jeudi giovedi quinta 木曜
d5: friday fri freitag viernes vendredi venerdi sexta 金曜
d6: saturday samstag sonnabend sabado samedi sabato 土曜
d7: sunday sonntag domingo dimanche domenica 日曜 周日 星期日 星期天
christmas: christmas xmas weihnachten navidad noel natale natal 圣诞 クリスマス
easter: easter ostern pascua paques pasqua pascoa 复活节
o2: second zweite zweiten zweiter deuxieme
o3: third dritte dritten dritter troisieme
o4: fourth vierte vierten vierter
o5: fifth funfte funften funfter
o6: sixth
o7: seventh
o8: eighth
o9: ninth
o10: tenth
o11: eleventh
o12: twelfth
o13: thirteenth
o14: fourteenth
o15: fifteenth
o16: sixteenth
o17: seventeenth
o18: eighteenth
o19: nineteenth
o20: twentieth
o30: thirtieth
o1: first erste ersten erster primero premier
weekend: weekend weekends wochenende finde 周末 週末
m1: january jan januar janner enero janvier gennaio janeiro
m2: february feb februar febrero fevrier febbraio fevereiro
m3: marz marzo marco mars
m4: april apr abril avril aprile
m5: mai mayo maggio maio
m6: june jun juni junio juin giugno junho
m7: july jul juli julio juillet luglio julho
m8: august aug agosto aout
m9: september sep sept septiembre septembre settembre setembro
m10: october oct oktober octubre octobre ottobre outubro
m11: november nov noviembre novembre
m12: december dec dezember dez diciembre decembre dicembre dezembro
today: today heute hoy hoje oggi 今天 今日
yesterday: yesterday gestern ayer ieri ontem 昨天 昨日
spring: fruhling primavera printemps 春天
summer: summer sommer verano verao 夏天
winter: winter invierno hiver inverno 冬天
autumn: autumn herbst otono automne autunno outono 秋天
noon: noon midday mittag mittags mediodia mezzogiorno 中午 正午
midnight: midnight mitternacht medianoche minuit mezzanotte 半夜 真夜中
lunch: lunch lunchtime
afternoon: afternoon afternoons nachmittag nachmittags pomeriggio 下午 午後
morning: morning mornings vormittag mattina matin manha 早上 上午 午前
evening: evening tonight abend abends soir stasera sera noite 晚上 今晚 今夜
eur: eur euro euros 欧元 ユーロ
usd: usd dollar dollars dolar dolares dollaro dollari 美元 美金 ドル
gbp: gbp pound pounds sterling pfund libras 英镑 ポンド
jpy: jpy yen 日元
cny: cny rmb yuan renminbi 人民币 人民元
chf: chf franc francs franken franchi
inr: inr rupee rupees
rub: rub ruble rubles rouble roubles rubel
aud: aud
cad: cad
pln: pln zloty
sek: sek kronor
dkk: dkk
nok: nok
try: lira
brl: brl reais
mxn: mxn pesos peso
btc: btc bitcoin bitcoins 比特币 ビットコイン
eth: ethereum
us: usa america american americans amerika estados 美国 アメリカ
uk: uk britain british england grossbritannien inghilterra inglaterra angleterre 英国 イギリス
europe: eu europe european europa ue eea eurozone 欧洲 ヨーロッパ
germany: germany german deutschland alemania allemagne germania alemanha 德国 ドイツ
france: france french frankreich francia franca 法国 フランス
spain: spain spanish spanien espana espagne spagna espanha 西班牙 スペイン
italy: italy italian italien italia italie 意大利 イタリア
portugal: portugal portuguese portugiesisch portogallo 葡萄牙 ポルトガル
austria: austria osterreich autriche
switzerland: switzerland swiss schweiz suiza suisse svizzera suica 瑞士 スイス
netherlands: netherlands dutch holland niederlande
belgium: belgium belgien belgique belgica belgio
ireland: ireland irish irland irlanda irlande
poland: poland polish polen polonia pologne
greece: greece greek griechenland grecia grece
russia: russia russian russland rusia russie 俄罗斯 ロシア
turkey: turkey turkish turkei turquia turquie turchia
china: china chinese 中国
japan: japan japanese japon giappone japao 日本
korea: korea korean corea coree 韩国 韓国
india: india indian indien inde 印度 インド
canada: canada canadian kanada 加拿大 カナダ
mexico: mexico mexican mexiko mexique messico
brazil: brazil brazilian brasil brasilien bresil brasile 巴西 ブラジル
australia: australia australian australien australie 澳大利亚 オーストラリア
thailand: thailand thai tailandia 泰国 タイランド
norway: norway norwegian norwegen noruega norvege norvegia
sweden: sweden swedish schweden suecia suede svezia
denmark: denmark danish danemark dinamarca danimarca
morocco: morocco marokko marruecos maroc marocco
egypt: egypt agypten egipto egypte egitto
vietnam: vietnam 越南 ベトナム
singapore: singapore singapur singapour 新加坡 シンガポール
london: london londres londra 伦敦 ロンドン
paris: paris parigi 巴黎 パリ
berlin: berlin berlino 柏林 ベルリン
munich: munich munchen monaco 慕尼黑 ミュンヘン
hamburg: hamburg amburgo
vienna: vienna wien viena vienne
zurich: zurich zurigo
madrid: madrid 马德里 マドリード
barcelona: barcelona barcelone 巴塞罗那 バルセロナ
rome: rome rom roma 罗马 ローマ
milan: milan mailand milano
lisbon: lisbon lissabon lisboa lisbonne lisbona
amsterdam: amsterdam 阿姆斯特丹 アムステルダム
brussels: brussels brussel bruselas bruxelles
dublin: dublin
edinburgh: edinburgh
manchester: manchester
birmingham: birmingham
leeds: leeds
glasgow: glasgow
liverpool: liverpool
bristol: bristol
sheffield: sheffield
cardiff: cardiff
belfast: belfast
newcastle: newcastle
nottingham: nottingham
leicester: leicester
cologne: cologne koln
frankfurt: frankfurt
stuttgart: stuttgart
dusseldorf: dusseldorf
leipzig: leipzig
dresden: dresden
lyon: lyon
marseille: marseille
toulouse: toulouse
bordeaux: bordeaux
valencia: valencia
seville: seville sevilla
malaga: malaga
bilbao: bilbao
naples: naples napoli neapel napoles
turin: turin torino
venice: venice venezia venedig venecia venise
florence: florence firenze florenz florencia
bologna: bologna
geneva: geneva genf ginebra ginevra
warsaw: warsaw warschau varsovia varsovie varsavia
budapest: budapest
prague: prague prag praga
copenhagen: copenhagen kopenhagen copenhague
stockholm: stockholm
oslo: oslo
istanbul: istanbul
athens: athens athen atenas athenes atene
moscow: moscow moskau moscu moscou mosca 莫斯科
dubai: dubai 迪拜 ドバイ
beijing: beijing peking 北京
shanghai: shanghai 上海
shenzhen: shenzhen 深圳
guangzhou: guangzhou 广州
hangzhou: hangzhou 杭州
chengdu: chengdu 成都
hongkong: hongkong 香港
tokyo: tokyo tokio 东京 東京
osaka: osaka 大阪
kyoto: kyoto 京都
seoul: seoul 首尔 ソウル
bangkok: bangkok 曼谷 バンコク
sydney: sydney 悉尼 シドニー
nagoya: nagoya 名古屋
sapporo: sapporo 札幌
fukuoka: fukuoka 福岡
nanjing: nanjing 南京
wuhan: wuhan 武汉
chongqing: chongqing 重庆
tianjin: tianjin 天津
suzhou: suzhou 苏州
melbourne: melbourne
toronto: toronto
montreal: montreal
vancouver: vancouver
boston: boston
chicago: chicago
seattle: seattle
houston: houston
dallas: dallas
denver: denver
miami: miami
atlanta: atlanta
philadelphia: philadelphia
business_card: firmenkarte geschaftskarte
travel_card: reisekarte
giro: girokarte girocard
visa: visa visas
mastercard: mastercard mastercards
maestro: maestro
amex: amex
paypal: paypal
apple: apple
google: google
samsung: samsung
alipay: alipay 支付宝
wechat: wechat 微信
sepa: sepa
swift: swift
iban: iban
android: android
ios: ios iphone iphones ipad
windows: windows
macos: macos macbook
linux: linux ubuntu debian
python: python
java: java
javascript: javascript js nodejs
typescript: typescript ts
kotlin: kotlin
rust: rust
golang: golang
ruby: ruby
php: php
docker: docker
kubernetes: kubernetes k8s
postgres: postgres postgresql
mysql: mysql
redis: redis
mongodb: mongodb
react: react reactjs
angular: angular
django: django
flask: flask
"""

PAIRS = """
business_card: business card; de empresa; carte professionnelle; carta aziendale
travel_card: travel card; de viaje; carte voyage; de viagem
joint: joint account; joint card
savings: savings account; savings card
apple_pay: apple pay
google_pay: google pay
samsung_pay: samsung pay
apple_watch: apple watch
amex: american express
western_union: western union
last_week: last week; letzte woche; letzter woche; semana pasada; semaine derniere
last_month: last month; letzten monat; letztem monat; mes pasado; mois dernier
last_year: last year; letztes jahr; letztem jahr; ano pasado; annee derniere
last_night: last night; letzte nacht; letzter nacht
this_week: this week; diese woche; dieser woche; esta semana; cette semaine
this_month: this month; diesen monat; diesem monat; este mes; ce mois
this_year: this year; dieses jahr; diesem jahr; este ano; cette annee
m3: in march; of march; this march; last march; next march; early march; late march; since march
m3: by march; until march; before march; after march; was march; is march; for march; from march
m5: in may; of may; this may; last may; next may; early may; late may; since may
m5: by may; until may; before may; after may; was may; for may; from may
us: united states; estados unidos; etats unis; stati uniti; vereinigten staaten
uk: united kingdom; great britain; reino unido; royaume uni; regno unito
new_york: new york; nueva york; nova york
new_zealand: new zealand; nueva zelanda
hongkong: hong kong
los_angeles: los angeles
san_francisco: san francisco
las_vegas: las vegas
sao_paulo: sao paulo
south_africa: south africa
part_time: part time
rent_out: rent out; renting out; rented out
client_side: client side
business_account: business account
"""
"""Names of two words: together they stand for something that neither of them does alone."""

CASED = {"US": "us", "EU": "europe", "UK": "uk", "USA": "us", "UAE": "uae", "NYC": "new_york"}
"""Written in capitals only: "us" is a word."""

NUMBER_WORDS = """
0: zero cero
2: two zwei dos deux twice zweimal double doubled doppelt doble couple
3: three drei tres trois triple tripled thrice dreimal dreifach
4: four vier cuatro quatre quattro quatro
5: five funf cinco cinq cinque
6: six sechs seis
7: seven sieben siete sept sette sete
8: eight acht ocho huit otto oito
9: nine neun nueve nove
10: ten zehn diez dix dieci dez
11: eleven elf
12: dozen dutzend docena douzaine dozzina duzia twelve zwolf doce douze dodici doze
13: thirteen dreizehn trece treize tredici treze
14: fourteen vierzehn catorce quatorze quattordici
15: fifteen funfzehn quince quinze quindici
16: sixteen sechzehn dieciseis seize sedici
17: seventeen siebzehn diecisiete diciassette
18: eighteen achtzehn dieciocho diciotto
19: nineteen neunzehn diecinueve diciannove
20: twenty zwanzig veinte vingt venti vinte
30: thirty dreissig treinta trente trenta trinta
40: forty vierzig cuarenta quarante quaranta quarenta
50: fifty funfzig cincuenta cinquante cinquanta cinquenta
60: sixty sechzig sesenta soixante sessanta sessenta
70: seventy siebzig setenta settanta
80: eighty achtzig ochenta ottanta oitenta
90: ninety neunzig noventa novanta
100: hundred hundert cien cento cent
1000: thousand thousands tausend tausende mille mil
100000: lakh lakhs
1000000: million millions millionen millon millones milione milioni milhao milhoes
10000000: crore crores
1000000000: billion billions bilhao bilhoes
1,000,000,000: milliarde milliarden mrd milliard milliards miliardo miliardi
1000000000000: trillion trillions billionen billon billones
0.5: half halb halbe halbes halben mitad moitie metade
0.25: quarter viertel
"""

ORDINALS = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
"""
"""What "1st", "2nd" ... are in words."""

SYMBOLS = {"€": "eur", "$": "usd", "£": "gbp", "₹": "inr", "₿": "btc"}
