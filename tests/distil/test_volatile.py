"""Which heads are new each time."""

from __future__ import annotations

import pytest

from warmup_lib.distil.volatile import MIN_VARIANTS, Head, blank, volatile


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-14",
        "2026-03-14T10:20:30Z",
        "2026-03-14 10:20:30.123+01:00",
        "14.03.2026",
        "3/14/26",
        "March 14, 2026",
        "14 March 2026",
        "14. März 2026",
        "14 de marzo de 2026",
        "2026年3月14日",
        "Saturday",
        "Samstag",
        "星期六",
        "土曜日",
        "السبت",
        "١٤ مارس ٢٠٢٦",
        "10:20",
        "10:20:30 am",
        "10時20分",
        "6f1c0b1e-5a5e-4f0b-9c3e-1d2a3b4c5d6e",
        "chatcmpl-9aBcD3fGh1Jk",
        "req_8f3a2b1c9d",
        "01HV3ZK8Q2N4R6T8W0Y2",
        "9e107d9d372bb6826bd81d3542a419d6",
        "1773482400",
        "4711081500",
    ],
)
def test_moments_and_ids_are_blanked(text: str) -> None:
    assert blank(f"Now: {text}.") == "Now: \N{WHITE SQUARE}."


@pytest.mark.parametrize(
    "text",
    [
        "Answer in at most 50 words.",
        "Use model v2 of the policy, section 4.1.",
        "You are an assistant of Acme Bank.",
        "Fees are 1.50 EUR per transfer over 1000 EUR.",
        "internationalization",
        "covid-19 rules",
    ],
)
def test_what_a_prompt_says_is_kept(text: str) -> None:
    assert blank(text) == text


def head(digest: str, prompt: str, tenant: str = "acme") -> Head:
    return Head(tenant, digest, prompt, "")


def test_three_heads_that_differ_in_a_moment_are_volatile() -> None:
    heads = [head(f"d{i}", f"You help. The time is 10:{i:02}.") for i in range(MIN_VARIANTS)]
    others = [head("e1", "You help. Be brief."), head("e2", "You help. Be kind.")]
    told = "timestamp at characters 22-27"
    assert volatile([*heads, *others]) == {"d0": told, "d1": told, "d2": told}


def test_two_are_not_enough_and_tenants_are_kept_apart() -> None:
    heads = [head(f"d{i}", f"It is 10:{i:02}.") for i in range(2)]
    assert volatile([*heads, head("d2", "It is 10:30.", tenant="zeta")]) == {}


def test_versions_of_a_prompt_are_not_volatile() -> None:
    assert volatile([head(f"d{n}", f"Answer in {n} words.") for n in (20, 50, 80)]) == {}


def test_a_moment_in_the_tools_counts_too() -> None:
    tools = [f'[{{"name":"f","description":"as of 2026-03-{d}"}}]' for d in (12, 13, 14)]
    assert volatile([Head("acme", t, "Help.", t) for t in tools]) == dict.fromkeys(
        tools, "timestamp at characters 34-44 of the tools"
    )


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["2026-03-14 10:20:3{}"], "timestamp at characters 4-23"),
        (["Saturday, 10:2{}"], "timestamp at characters 14-19"),
        (["6f1c0b1e-5a5e-4f0b-9c3e-1d2a3b4c5d6{}"], "id at characters 4-40"),
        (["req_8f3a2b1c9{}"], "id at characters 4-18"),
        (["123456{}"], "number at characters 4-11"),
        (["req_8f3a2b1c9{}", "12:0{}"], "id at characters 4-18, 1 more"),
        (["since 2026-01-01,", "req_8f3a2b1c9{}"], "id at characters 22-36"),
    ],
)
def test_the_first_span_that_differs_is_told_and_not_its_text(texts: list[str], told: str) -> None:
    heads = [head(str(n), "At: " + " ".join(t.format(n) for t in texts)) for n in range(3)]
    written = [one.system_prompt for one in heads]
    assert [text[4:] for text in written] != [written[0][4:]] * 3
    assert volatile(heads) == {"0": told, "1": told, "2": told}


def test_each_head_is_told_its_own_place() -> None:
    heads = [head(day, f"On {day} at 10:2{n}.") for n, day in enumerate(("Monday", "Friday"))]
    heads.append(head("Wednesday", "On Wednesday at 10:22."))
    late = [head(f"d{n}", f"Since May {5 + n % 2 * 10} until 10:2{n}.") for n in range(3)]
    told = volatile([*heads, *late])
    assert told["Monday"] == "timestamp at characters 3-9, 1 more"
    assert told["Wednesday"] == "timestamp at characters 3-12, 1 more"
    assert told["d0"] == "timestamp at characters 6-11, 1 more"
    assert told["d1"] == "timestamp at characters 6-12, 1 more"


def test_heads_of_one_text_are_not_volatile() -> None:
    assert volatile([head(f"d{n}", "Open since 2026-01-01.") for n in range(3)]) == {}
