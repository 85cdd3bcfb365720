"""A capital inside a sentence tells a name, but not in German and not what people shout."""

from __future__ import annotations

import pytest

from warmup_lib.guard import signature


def told(text: str) -> set[str]:
    return {mark for mark in signature(text).split("|", 3)[3].split() if mark[0] == "@"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Send money to Anna Schmidt", {"@anna", "@schmidt"}),
        ("Transferir dinero a Lucía", {"@lucía"}),
        ("un virement à l'attention d'Élodie", {"@élodie"}),
        ("Anna is my sister. Can she pay?", set()),
        ("My Card was lost, where is the App?", set()),
        ("Hello, Write a letter to London, Anna", {"@london", "@anna"}),
        ("was kostet ein Kredit, wenn ich im Monat 10 € zahle", {"@eur"}),
        ("Why can I not see my PIN at the ATM", set()),
        ("WHY IS MY CARD LOCKED", set()),
        ("Ich habe eine Frage zum Konto von Thomas", set()),
        ("Lösche Wecker", set()),
        ("Schalte alle Wecker aus", set()),
        ("Wie ist das Wetter in München", {"@munich"}),
        ("如何用 Pandas 读取文件", {"@pandas"}),
        ("手机app打不开", set()),
        ("Where Is My Card From The Shop", set()),
        ("Please tell me the Exchange Rate", set()),
        ("Is the Eiffel Tower in London", {"@eiffel", "@tower", "@london"}),
        ("Send Money To London", {"@london"}),
    ],
)
def test_names(text: str, expected: set[str]) -> None:
    assert told(text) == expected
