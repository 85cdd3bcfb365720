"""A list of the user's becomes rows under the identities that the serving side will see."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from warmup_lib.config import Config
from warmup_lib.documents.lists import Listing, lists, read_list
from warmup_lib.documents.stage import run
from warmup_lib.errors import ConfigError, InputDataError
from warmup_lib.keys import Keys, Request
from warmup_lib.lake import Lake

SECRET = "a secret of the lists' tests"
KEYS = Keys(SECRET.encode())
DAY = "2026-03-14"
ROW = {"tenant": "acme", "model": "small", "prompt": "How do I  close my account?"}


def written(path: Path, *rows: Any) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def pinned(path: str, **more: Any) -> Listing:
    return Listing("pinned", None, path, **{"first": None, **more})


def read(listing: Listing) -> list[dict[str, Any]]:
    return list(read_list(listing, Config(), KEYS).rows)


def test_a_row_has_the_identities_of_the_request_it_names(tmp_path: Path) -> None:
    row = {
        **ROW,
        "system_prompt": "You are brief.",
        "tools": [{"name": "close"}],
        "adapter": "bank",
        "params": {"temperature": 0},
        "response": "In the app.",
        "request_id": "anything",
        "ts": "not a time",
    }
    [made] = read(pinned(written(tmp_path / "list.jsonl", row)))
    identity = KEYS.identity(
        Request(
            tenant="acme",
            model="small",
            prompt=ROW["prompt"],
            system_prompt="You are brief.",
            tools=[{"name": "close"}],
            adapter="bank",
            params={"temperature": 0},
        )
    )
    assert (made["response_digest"], made["context_digest"]) == (
        identity.response,
        identity.context,
    )
    assert (made["text_digest"], made["head_digest"]) == (identity.text, identity.head)
    assert (made["text"], made["response"]) == (ROW["prompt"], "In the app.")
    assert (made["source"], made["part"], made["position"]) == ("pinned", None, 1)
    assert (made["redacted"], made["history"]) == (False, False)


def test_a_head_alone_names_no_text(tmp_path: Path) -> None:
    path = written(tmp_path / "list.jsonl", {**ROW, "prompt": None, "system_prompt": "Be brief."})
    [made] = read(pinned(path))
    same = KEYS.identity(Request("acme", "small", "whatever", system_prompt="Be brief."))
    assert made["head_digest"] == same.head
    assert made["system_prompt"] == "Be brief."
    named = ("text", "text_digest", "context_digest", "response_digest", "response")
    assert [made[name] for name in named] == [None] * 5


def test_what_is_personal_is_redacted_and_marked(tmp_path: Path) -> None:
    path = written(tmp_path / "list.jsonl", {**ROW, "prompt": "Mail bob@example.org about it"})
    [made] = read(pinned(path))
    assert (made["text"], made["redacted"]) == ("Mail <EMAIL> about it", True)


def test_only_the_first_rows_are_read(tmp_path: Path) -> None:
    path = written(tmp_path / "list.jsonl", ROW, {**ROW, "prompt": "two"}, {"bad": "row"})
    assert [row["text"] for row in read(pinned(path, first=2))] == [ROW["prompt"], "two"]
    assert read(pinned(path, first=0)) == []
    two = read_list(pinned(path, first=2), Config(), KEYS)
    assert (two.beyond, two.beyond_from) == (1, 3)
    none = read_list(pinned(path, first=0), Config(), KEYS)
    assert (none.beyond, none.beyond_from) == (3, 1)


def test_a_list_may_be_compressed_and_have_empty_lines(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps(ROW).encode() + b"\n\n\n{}"))
    assert [row["position"] for row in read(pinned(str(path), first=1))] == [1]
    with pytest.raises(InputDataError, match=r"line 4 of '.*' can't be used: missing_field"):
        read(pinned(str(path)))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({**ROW, "tenant": "*"}, r"bad_tenant \(tenant\)"),
        ({**ROW, "tenant": "acme-*"}, r"bad_tenant \(tenant\)"),
        ({**ROW, "tenant": "acme-?"}, r"bad_tenant \(tenant\)"),
        ({**ROW, "tenant": "\uff0a"}, r"bad_tenant \(tenant\)"),
        ({**ROW, "tenant": 7}, r"wrong_type \(tenant\)"),
        ({**ROW, "tenant": " "}, r"missing_field \(tenant\)"),
        ({"model": "small", "prompt": "x"}, r"missing_field \(tenant\)"),
        ({**ROW, "model": None}, r"missing_field \(model\)"),
        ({**ROW, "prompt": 3}, r"wrong_type \(prompt\)"),
        ({**ROW, "prompt": " "}, r"empty_prompt \(prompt\)"),
        ({**ROW, "prompt": None}, r"missing_field \(prompt\)"),
        ({**ROW, "tools": "hammer"}, r"wrong_type \(tools\)"),
        (["a list"], "not_an_object"),
    ],
)
def test_a_bad_line_is_named_without_its_content(tmp_path: Path, row: Any, says: str) -> None:
    path = written(tmp_path / "list.jsonl", ROW, row)
    with pytest.raises(
        InputDataError, match=rf"plan\.sources\.pinned: line 2 of .*{says}"
    ) as found:
        read(pinned(path))
    assert "hammer" not in str(found.value)


def test_bytes_that_are_no_json_are_named(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    path.write_bytes(json.dumps(ROW).encode() + b"\n{secret words\n")
    with pytest.raises(InputDataError, match=r"line 2 .* invalid_json") as found:
        read(pinned(str(path)))
    assert "secret words" not in str(found.value)


def test_a_file_that_is_not_there_or_breaks_off_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"plan\.sources\.pinned: there is no file"):
        read(pinned(str(tmp_path / "absent.jsonl")))
    with pytest.raises(ConfigError, match=r"plan\.sources\.pinned: there is no file"):
        read(pinned(str(tmp_path)))
    broken = tmp_path / "list.jsonl.gz"
    broken.write_bytes(gzip.compress(json.dumps(ROW).encode() * 2000)[:-12])
    with pytest.raises((ConfigError, InputDataError), match=r"plan\.sources\.pinned"):
        read(pinned(str(broken)))


def test_each_source_that_is_on_reads_its_lists() -> None:
    sources = {
        "languages": {"sets": {"fr": "fr.jsonl", "de": "de.jsonl"}, "sentences": 7},
        "output_templates": {"path": "forms.jsonl", "limit": 5},
        "pinned": {"path": "pinned.jsonl", "enabled": False},
        "few_shot": {"classifiers": {"routing": "samples.jsonl"}},
    }
    config = Config.model_validate({"plan": {"sources": sources}})
    assert lists(config) == [
        Listing("languages", "de", "de.jsonl", 7, ("prompt",)),
        Listing("languages", "fr", "fr.jsonl", 7, ("prompt",)),
        Listing("output_templates", None, "forms.jsonl", 5),
        Listing("few_shot", "routing", "samples.jsonl", None, ("prompt", "intent"), 500),
    ]
    assert lists(Config()) == []


def test_a_sample_needs_its_intent_and_a_sentence_its_language(tmp_path: Path) -> None:
    path = written(tmp_path / "list.jsonl", ROW)
    with pytest.raises(InputDataError, match=r"few_shot\.c: line 1 .* missing_field \(intent\)"):
        read(Listing("few_shot", "c", path, None, ("prompt", "intent")))
    [made] = read(Listing("languages", "de", path, 5, ("prompt",)))
    assert made["locale"] == "de"


def test_the_stage_keeps_the_lists_of_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARMUP_SECRET", SECRET)
    lake = Lake(str(tmp_path / "lake"))
    path = written(tmp_path / "list.jsonl", ROW, {**ROW, "prompt": "two"})
    config = Config.model_validate({"plan": {"sources": {"pinned": {"path": path}}}})
    report = run(lake, DAY, config)
    assert report.facts["listed"] == {"pinned": 2}
    assert (report.rows_in, report.rows_out) == (2, 2)
    rows = lake.read("listed", {"day": DAY}).to_pylist()
    assert [(r["source"], r["position"], r["text"]) for r in rows] == [
        ("pinned", 1, ROW["prompt"]),
        ("pinned", 2, "two"),
    ]
    assert run(lake, DAY, Config()).facts["listed"] == {}
    assert lake.partitions("listed") == []
