"""Numbers, negations, opposites and names decide whether two texts may share an answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmup_lib.guard import compatible, signature, tag

SAME = [
    ("Review:\n```\nload_all('a')\n```", 'Review:\n```\nloadAll("A")\n```'),
    ("解释\n```\nload_all('a')\n```", "解释\n```\nloadOne('a')\n```"),
    ("My Card Is Lost", "my card is lost"),
    ("How Do I Reset My Passcode?", "How do I reset my passcode?"),
    ("Where Do I Find The Exchange Rate?", "where do I find the exchange rate?"),
    ("I have a Question about Fees", "I have a question about fees"),
    ("How do I reset my PIN?", "how can i reset the pin"),
    ("I can\u2019t log in", "I cant log in"),
    ("Refund within 14 days?", "refund in 14 days"),
    ("٣ transfers", "3 transfers"),
    ("\uff13 transfers", "3 transfers"),
    ("三天内能退款吗", "3天内可以退款吗"),
    ("帮我查一下余额", "查余额"),
    ("能不能退款", "可以退款吗"),
    ("有没有发票", "有发票吗"),
    ("no he recibido nada", "no he recibido el paquete"),
    ("je ne peux pas payer", "je ne l'ai plus"),
    ("No consigo entrar", "no puedo entrar"),
    ("無料プランはありますか", "プランはありますか"),
    ("I don't know why my payment was declined", "Why was my payment declined?"),
    ("ich weiß nicht, wann die Karte kommt", "wann kommt die Karte"),
    ("no sé por qué falla", "por qué falla"),
    ("不知道怎么退款", "怎么退款"),
    ("I'm unable to pay", "I can't pay"),
    ("It works no longer", "It does not work"),
    ("send my Card to my Address", "send my card to my address"),
    ("PLEASE SEND ME A CARD", "please send me a card"),
    ("get the PIN ASAP", "get the pin asap"),
    ("He wants a card", "She wants a card"),
    ("Under which name?", "which unit"),
]
DIFFERENT = [
    ("What does it print?\n```\nprint('a')\n```", "What does it print?\n```\nprint('b')\n```"),
    ("Right?\n```\nif a == b: pass\n```", "Right?\n```\nif a != b: pass\n```"),
    ("How do I pay Anna Back, Please", "How do I pay Greta Back, Please"),
    ("Pay Anna Schmidt", "Pay Greta Schmidt"),
    ("a C++ example", "a C# example"),
    ("Review this:\n```python\nload(3)\n```", "Review this:\n```python\nload(4)\n```"),
    ("Convert to Go:\n```\nload()\n```", "Convert to Rust:\n```\nload()\n```"),
    ("用 Go 改写\n```\nload()\n```", "用 Rust 改写\n```\nload()\n```"),
    ("refund 20 euro", "refund 50 euro"),
    ("a refund of half of it", "a refund of a quarter of it"),
    ("charged double", "charged triple"),
    ("a dozen cards", "ten cards"),
    ("my nineteenth try", "my twentieth try"),
    ("1.5 litres", "5.1 litres"),
    ("order 12 of 21", "order 12"),
    ("三百五十元", "三百元"),
    ("二〇二五年账单", "二〇二六年账单"),
    ("第一次付款", "第二次付款"),
    ("I can log in", "I can't log in"),
    ("It did work", "It din't work"),
    ("It works", "It hardly works"),
    ("Is it possible to pay in cash?", "Is it impossible to pay in cash?"),
    ("the correct rate", "the incorrect rate"),
    ("a known merchant", "an unknown merchant"),
    ("is it clear", "is it unclear"),
    ("my top-up failed to work", "my top-up works"),
    ("all cards except this one", "all cards with this one"),
    ("my Netflix account", "my Spotify account"),
    ("money from TSB", "money from UBS"),
    ("pay it in THB", "pay it in ZAR"),
    ("a kenyan passport", "a thai passport"),
    ("Greta wants to know my balance", "Marek wants to know my balance"),
    ("I can log in and I get the code", "I can't log in and I don't get the code"),
    ("I have purchased nothing", "I haven't purchased nothing"),
    ("It shows twice once a month", "It shows twice twice a month"),
    ("Ich habe eine Karte", "Ich habe keine Karte"),
    ("Das geht", "Das geht nicht"),
    ("puedo pagar", "no puedo pagar"),
    ("he recibido algo", "no he recibido nada"),
    ("je peux payer", "je ne peux pas payer"),
    ("consigo entrar", "não consigo entrar"),
    ("consigo entrar no app", "não consigo entrar no app"),
    ("posso pagare", "non posso pagare"),
    ("我能登录", "我不能登录"),
    ("收到验证码了", "没有收到验证码"),
    ("ログインできます", "ログインできません"),
    ("ログインできる", "ログインできない"),
]


@pytest.mark.parametrize(("a", "b"), SAME)
def test_texts_that_say_the_same_are_compatible(a: str, b: str) -> None:
    assert signature(a) == signature(b)
    assert compatible(a, b)


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_another_number_or_a_negation_is_refused(a: str, b: str) -> None:
    assert not compatible(a, b)
    assert not compatible(b, a)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pay 1,000 on 2026-03-14 at 10:30", "1000 2026-03-14 10:30|0|0|"),
        ("Ich kann ohne Karte nicht zahlen", "|2|0|"),
        ("Turn my card off in Rome for 2 days", "2d|0|0|-off @rome"),
    ],
)
def test_signature_is_numbers_negations_and_marks(text: str, expected: str) -> None:
    assert signature(text) == expected


def test_a_tag_is_16_hex_digits_of_the_signature() -> None:
    assert tag("Turn my card off") == tag("switch off the card, please") == "4f66255436077f5e"
    assert tag("Turn my card on") != tag("Turn my card off")


@given(st.text(max_size=60))
def test_any_text_has_a_signature_and_a_tag(text: str) -> None:
    assert compatible(text, text)
    assert int(tag(text), 16) >= 0


@pytest.mark.parametrize(
    "part", ["一", "九", "0", "9", "一亿", "٩", "hundred ", "1,000", "十", "½"]
)
def test_no_number_is_too_long(part: str) -> None:
    assert len(tag(part * 6000)) == 16


_NUMBERS = st.text(
    st.sampled_from("零一九十百千万亿两٣९๓²½0123456789 ,.:-/°\u2212\u00d7\u00f7天%‰")
    | st.characters(categories=["N"])
)


@given(st.lists(_NUMBERS | st.sampled_from(["hundred ", "minus ", "one ", "mg ", "2nd ", "a.m."])))
def test_any_run_of_numerals_has_a_signature(parts: list[str]) -> None:
    text = "".join(parts)
    assert compatible(text, text)
    assert signature(text).count("|") >= 3


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_two_integers_are_compatible_only_when_equal(a: int, b: int) -> None:
    assert compatible(f"send {a} now", f"send {b} now") == (a == b)


@pytest.mark.realdata
def test_translations_of_one_utterance_agree_on_negation(real_data: Path) -> None:
    agree = total = 0
    for file in sorted(Path(real_data, "xsid").glob("*.tsv*")):
        header, *rows = file.read_text(encoding="utf-8").splitlines()
        names = header.split("\t")
        for row in rows:
            cells = dict(zip(names, row.split("\t"), strict=False))
            if cells.get("lang", "")[:2] in {"de", "it", "zh", "ja"}:
                total += 1
                agree += _negated(cells["text"]) == _negated(cells["text_en"])
    assert total > 1000
    assert agree / total > 0.95


def _negated(text: str) -> bool:
    _, words, no, _ = signature(text).split("|", 3)
    return words != "0" or no != "0"
