from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmup_lib.ingest.redact import dump_redacted, redact, redact_json

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0B\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("write to jane.doe+x@mail.example.com, please", "write to <EMAIL>, please"),
        ("\uff2a\uff21\uff2e\uff25\uff20example.com", "<EMAIL>"),
        ("?to=jane.doe77%40example.com&x=1", "?to=<EMAIL>&x=1"),
        ('{"to": "jane\\u0040example.com"}', '{"to": "<EMAIL>"}'),
        ("card 4111.1111.1111.1111.", "card <CARD>."),
        ("4111\r\n1111 1111 1111", "<CARD>"),
        ("4111-1111-1111\n1111", "<CARD>"),
        ("4111 1111\n1111 1111", "<CARD>"),
        ("a@b.io and c@d.io", "<EMAIL> and <EMAIL>"),
        ("邮箱:li@例子.中国。", "邮箱:<EMAIL>。"),
        ("字" * 80 + "li.wei@mail.cn" + "字" * 80, "字" * 80 + "<EMAIL>" + "字" * 80),
        ("卡号4111111111111111请查", "卡号<CARD>请查"),
        ("卡号４１１１１１１１１１１１１１１１", "卡号<CARD>"),
        ("密码是hunter2abc谢谢", "密码是<SECRET>谢谢"),
        ("my card is 4111 1111 1111 1111.", "my card is <CARD>."),
        ("4111111111111111", "<CARD>"),
        ("3782-822463-10005 expired", "<CARD> expired"),
        ("pay DE89 3704 0044 0532 0130 00 and more", "pay <IBAN> and more"),
        ("gb82west12345698765432", "<IBAN>"),
        ("Bitte auf BE68 5390 0754 7034 überweisen", "Bitte auf <IBAN> überweisen"),
        ("NO93 8601 1117 947", "<IBAN>"),
        ("call +44 20 7946 0958 or 0049 171 1234567", "call <PHONE> or <PHONE>"),
        ("(415) 555-2671", "<PHONE>"),
        ("我的手机号是13800138000", "我的手机号是<PHONE>"),
        ("ruf mich an: 0171 1234567", "ruf mich an: <PHONE>"),
        ("ruf mich an: 01711234567", "ruf mich an: <PHONE>"),
        ("my phone number is 5551234567", "my phone number is <PHONE>"),
        ("sk-abcdefghijklmnop1234", "<SECRET>"),
        ("key AKIAIOSFODNN7EXAMPLE here", "key <SECRET> here"),
        ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "<SECRET>"),
        (f"token {JWT}", "token <SECRET>"),
        (f"look: {PEM} done", "look: <SECRET> done"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBg", "<SECRET>"),
        ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer <SECRET>"),
        ('{"password": "hunter2hunter2"}', '{"password": "<SECRET>"}'),
        ("redis://user:pa55word@cache:6379/0", "redis://<SECRET>@cache:6379/0"),
    ],
)
def test_what_goes(text: str, clean: str) -> None:
    assert redact(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "my card is 4111 1111 1111 1112",  # Luhn does not hold
        "41111111\n11111111",  # two order numbers in a column
        "4111\n1111\n1111\n1111",
        "%40example.com and react%4020.2.0",
        "1234567812345670",  # Luhn holds, but no issuer begins with 1
        "DE89370400440532013001",  # mod 97 does not hold
        "order 0123456789 of 2026-03-14 10:30",
        "+1 000 000 0000",
        "123-456-7890",  # no North American area begins with 1
        "1773455400123",
        "192.168.100.200",
        "what does sk-learn do?",
        "my password is wrong and my api key: unknown",
        "@app.get and user@localhost",
        "how do I write a -----BEGIN line?",
        "https://example.com:8080/a@b",
        "<EMAIL> and <CARD> were here before",
    ],
)
def test_what_stays(text: str) -> None:
    assert redact(text) == text


@settings(deadline=None)
@given(st.text())
def test_a_clean_text_is_the_same_object_or_redaction_is_final(text: str) -> None:
    clean = redact(text)
    assert redact(clean) == clean


@settings(deadline=None)
@given(st.lists(st.sampled_from(["4111111111111111", "a@b.io", "0171 1234567", " ", "x", "\n"])))
def test_redaction_is_final(pieces: list[str]) -> None:
    clean = redact("".join(pieces))
    assert redact(clean) == clean


def test_long_hostile_texts_take_linear_time() -> None:
    for text in (
        "a" * 300_000 + "@",
        "1 " * 20_000,
        "-----BEGIN PRIVATE KEY-----" * 3000,
        "+1" * 50_000,
    ):
        redact(text)


def test_json_is_redacted_in_depth_names_included() -> None:
    plain = {
        "at": 1773455400123,
        "us": 1773455400123456,
        "t": 0.7,
        "big": 2**60,
        "seed": -4,
        "f": 4111111111111111.5,
    }
    value = {
        "a@b.io": ["4111111111111111", {"n": 4111111111111111, "t": None}],
        "ok": True,
        **plain,
    }
    clean = {"<EMAIL>": ["<CARD>", {"n": "<CARD>", "t": None}], "ok": True, **plain}
    assert redact_json(value) == clean
    assert dump_redacted(value) == (orjson.dumps(clean).decode(), True)


def test_a_secret_behind_a_json_escape_is_seen() -> None:
    text, changed = dump_redacted({"t": 'first\nsk-abcdefghijklmnop1234 "x"\ta@b.io'})
    assert changed
    assert orjson.loads(text) == {"t": 'first\n<SECRET> "x"\t<EMAIL>'}


@given(
    st.recursive(
        st.none() | st.booleans() | st.text("ab"),
        lambda c: st.lists(c) | st.dictionaries(st.text("xy"), c),
    )
)
@settings(max_examples=50, deadline=None)
def test_clean_json_is_kept_as_logged(value: Any) -> None:
    text, changed = dump_redacted(value)
    assert (orjson.loads(text), changed) == (value, False)


def test_fields_are_sorted_on_demand_only() -> None:
    assert dump_redacted({"b": 1, "a": 2}) == ('{"b":1,"a":2}', False)
    assert dump_redacted({"b": 1, "a": 2}, sort=True) == ('{"a":2,"b":1}', False)


CARD = "4111111111111111"


def test_the_keys_a_gateway_asked_for_stay_whose_digits_are_a_cards() -> None:
    key = f"wu1:a1b2c3:{CARD}:responses:{CARD}:0123456789ab:{CARD}{CARD}"
    looked = [{"layer": "responses", "found": "absent", "key": key, "nearest": key}]
    evidence = {"looked": looked, "encoder": CARD, "salt": CARD, "redis_epoch": CARD}
    assert redact_json({"cache_evidence": evidence}) == {"cache_evidence": evidence}


def test_what_a_gateway_put_into_a_key_of_its_own_is_removed() -> None:
    key = f"wu1:a1b2c3:{CARD}:responses:{CARD}:0123456789ab:{CARD}{CARD}"
    seen = {
        "looked": [{"key": f"{key}:a@b.io"}, {"key": CARD}, {"key": "u1:a@b.io"}, "a@b.io"],
        "host": "a@b.io",
        "encoder": f"{CARD} a@b.io",
    }
    assert redact_json({"cache_evidence": seen}) == {
        "cache_evidence": {
            "looked": [
                {"key": f"{key}:<EMAIL>"},
                {"key": "<CARD>"},
                {"key": "u1:<EMAIL>"},
                "<EMAIL>",
            ],
            "host": "<EMAIL>",
            "encoder": "<CARD> <EMAIL>",
        }
    }
    assert redact_json({"looked": [{"key": key}]}) != {"looked": [{"key": key}]}
