"""The words that set a group apart."""

from __future__ import annotations

import pytest

from warmup_lib.cluster.keywords import keywords, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Reset my PIN now!", ["reset", "pin", "now"]),
        ("top-up of 100 EUR", ["top", "eur"]),
        ("Straße für Ärzte", ["strasse", "für", "ärzte"]),
        ("银行卡", ["银行", "行卡", "银行卡"]),
        ("我的银行卡", ["银行", "行卡", "银行卡"]),
        ("アラームを設定する", ["アラーム", "設定"]),
        ("카드 분실", ["카드", "분실"]),
        ("где карта", ["где", "карта"]),
        ("Redis缓存", ["redis", "缓存"]),
        ("?! 123", []),
    ],
)
def test_terms_are_words_or_pieces_of_unspaced_runs(text: str, expected: list[str]) -> None:
    assert sorted(terms(text)) == sorted(expected)


def test_what_all_groups_share_is_no_keyword_and_the_most_telling_comes_first() -> None:
    texts = [
        "please block the card",
        "please block the card today",
        "please refund the payment",
        "please refund the booking",
        "please show the weather",
        "please show the weather forecast",
    ]
    found = keywords(texts, [0, 0, 1, 1, 2, 2], 3)
    assert found[0] == ["block", "card", "today"]
    assert found[1] == ["refund", "booking", "payment"]
    assert found[2] == ["weather", "show", "forecast"]


def test_chinese_is_named_by_its_longest_pieces_once() -> None:
    texts = ["设置闹钟", "我要设置闹钟", "查询天气预报", "明天的天气预报"]
    alarm, weather = keywords(texts, [0, 0, 1, 1], 2)
    assert alarm[0] in {"设置闹", "置闹钟"}
    assert "天气预" in weather or "气预报" in weather
    for words in (alarm, weather):
        assert not any(a != b and a in b for a in words for b in words)


def test_a_single_group_has_nothing_to_be_told_from() -> None:
    assert keywords(["block the card", "refund"], [0, 0], 1) == [[]]


def test_texts_without_words_and_empty_groups_have_no_keywords() -> None:
    assert keywords(["?", "!!"], [0, 1], 2) == [[], []]
    assert keywords(["block", "refund"], [0, 2], 3) == [["block"], [], ["refund"]]
