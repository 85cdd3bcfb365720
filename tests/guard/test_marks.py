"""Opposites, places, days, currencies and products are told apart in every language."""

from __future__ import annotations

import pytest

from warmup_lib.guard import compatible
from warmup_lib.guard.marks import mark
from warmup_lib.guard.poles import HAN_KANA, POLES

OPPOSITES = [
    ("Turn on the card", "Turn off the card"),
    ("How do I enable roaming?", "How do I disable roaming?"),
    ("Lock my account", "Unlock my account"),
    ("Can I freeze my card?", "Can I unfreeze my card?"),
    ("activate the tariff", "deactivate the tariff"),
    ("increase my limit", "decrease my limit"),
    ("what do I pay before the trip", "what do I pay after the trip"),
    ("buy shares", "sell shares"),
    ("open an account", "close an account"),
    ("debit card fees", "credit card fees"),
    ("incoming transfer", "outgoing transfer"),
    ("top up my account", "withdraw from my account"),
    ("log in to the app", "log out of the app"),
    ("export the file", "import the file"),
    ("Schalte das Licht an", "Schalte das Licht aus"),
    ("Karte sperren", "Karte entsperren"),
    ("Limit erhöhen", "Limit senken"),
    ("Geld einzahlen", "Geld abheben"),
    ("encender la alarma", "apagar la alarma"),
    ("bloquear la tarjeta", "desbloquear la tarjeta"),
    ("abrir una cuenta", "cerrar una cuenta"),
    ("activer la carte", "désactiver la carte"),
    ("ouvrir un compte", "fermer un compte"),
    ("acheter des actions", "vendre des actions"),
    ("ativar o cartão", "desativar o cartão"),
    ("bloquear o cartão", "desbloquear o cartão"),
    ("aumentare il limite", "ridurre il limite"),
    ("accendi la luce", "spegni la luce"),
    ("打开通知", "关闭通知"),
    ("冻结银行卡", "解冻银行卡"),
    ("充值", "提现"),
    ("付款之前", "付款之后"),
    ("通知をオンにする", "通知をオフにする"),
    ("カードをロックする", "カードのロックを解除する"),
    ("口座を開く", "口座を閉じる"),
    ("the younger one", "the older one"),
    ("show the newest file", "show the oldest file"),
    ("the largest file", "the smallest file"),
    ("turn left", "turn right"),
    ("links oder weiter", "rechts oder weiter"),
    ("à gauche", "à droite"),
    ("a la izquierda", "a la derecha"),
    ("左边", "右边"),
    ("Is smoking allowed?", "Is smoking forbidden?"),
    ("ist es erlaubt", "ist es verboten"),
    ("está permitido", "está prohibido"),
    ("c'est permis", "c'est interdit"),
    ("允许吸烟", "禁止吸烟"),
    ("encode it", "decode it"),
    ("compress a folder", "decompress a folder"),
    ("vor dem Termin", "nach dem Termin"),
    ("visible files", "invisible files"),
    ("hot water", "cold water"),
    ("is the website up", "is the website down"),
    ("show the sidebar", "hide the sidebar"),
    ("is it true", "is it false"),
    ("Ist das kostenlos", "Ist das kostenpflichtig"),
    ("a public repo", "a private repo"),
    ("list even numbers", "list odd numbers"),
    ("Request money from mum", "Send money to mum"),
    ("is my son covered", "is my daughter covered"),
    ("gegen den Vorschlag", "für den Vorschlag"),
    ("my personal account", "my business account"),
    ("client side code", "server side code"),
]
OTHERS = [
    ("cash machines in paris", "cash machines in london"),
    ("Wetter in Berlin", "Wetter in Hamburg"),
    ("remind me on monday", "remind me on tuesday"),
    ("it was today", "it was yesterday"),
    ("what I paid last week", "what I paid last year"),
    ("flights in spring", "flights in autumn"),
    ("pay at noon", "pay at midnight"),
    ("a virtual card", "a disposable virtual card"),
    ("vols en juillet", "vols en août"),
    ("pay in euros", "pay in dollars"),
    ("pay €20", "pay $20"),
    ("does apple pay work", "does google pay work"),
    ("flights to new york", "flights to york"),
    ("install it on android", "install it on iphone"),
    ("sort a list in python", "sort a list in java"),
    ("a transfer to the US", "a transfer to the UK"),
    ("去北京的机票", "去上海的机票"),
    ("東京の天気", "大阪の天気"),
    ("月曜の予定", "火曜の予定"),
    ("weather today", "weather tomorrow"),
    ("it was charged in may", "it was charged in march"),
    ("a transfer to nigeria", "a transfer to ghana"),
    ("cards in south africa", "cards in south korea"),
    ("closed at easter", "closed at christmas"),
    ("declined for the second time", "declined for the third time"),
    ("charged once a month", "charged twice a month"),
    ("fees of my travel card", "fees of my business card"),
]
SAME = [
    ("open an account", "get an account"),
    ("increase my limit", "raise my limit"),
    ("I want to unlock my card", "how can I unfreeze the card?"),
    ("delete the alarm", "cancel my alarm"),
    ("pay 20 euros", "pay 20 EUR"),
    ("a transfer from Germany", "transfers from Deutschland"),
    ("virtual card", "eine virtuelle Karte"),
    ("Tell us more", "tell me more"),
    ("Visa's fees", "visa fees"),
    ("the oldest file", "the earliest file"),
    ("is it banned", "is it prohibited"),
    ("an odd charge", "a strange charge"),
    ("slow down", "slower, down"),
]


@pytest.mark.parametrize(("a", "b"), [*OPPOSITES, *OTHERS])
def test_opposites_and_other_things_share_no_answer(a: str, b: str) -> None:
    assert not compatible(a, b)


@pytest.mark.parametrize(("a", "b"), SAME)
def test_other_words_for_the_same_share_an_answer(a: str, b: str) -> None:
    assert compatible(a, b)


def test_every_pole_of_the_lists_is_reached() -> None:
    words = {mark(word.rstrip("*")) for words in POLES.values() for word in words.split()}
    assert words == {f"-{pole}" for pole in POLES}
    assert set(HAN_KANA) <= set(POLES)
