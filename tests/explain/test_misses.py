"""Which requests missed where: as gateways saw it, else as the replay found it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.explain.made import EPOCH, KEYS, QUESTION, asked, item, looked, row_of, standing
from warmup_lib.evidence import FIELD, Evidence, Looked
from warmup_lib.explain.miss import Miss
from warmup_lib.explain.misses import (
    Passed,
    Replayed,
    Unread,
    collect,
    evidence_of,
    gateways,
    silent_requests,
)
from warmup_lib.lake import Lake
from warmup_lib.tables import HITS, REQUESTS

HIT = Looked("responses", "hit", "k")
HOSTS = {"redis": "redis", "vllm": "host"}


def rows(*made: dict[str, Any]) -> pa.Table:
    empty = dict.fromkeys(REQUESTS.schema.names)
    return pa.Table.from_pylist([empty | one for one in made], schema=REQUESTS.schema)


def lake_with(folder: Path, *hits: dict[str, Any]) -> Replayed:
    lake = Lake(str(folder))
    if hits:
        table = pa.Table.from_pylist(
            [dict.fromkeys(HITS.schema.names) | one for one in hits], schema=HITS.schema
        )
        lake.replace("hits", {"plan_id": "p", "window": "w"}, table)
    return Replayed(lake, "p", "w")


def found(folder: Path, *made: dict[str, Any], hits: Any = (), known: Any = None) -> list[Any]:
    table, replayed = rows(*made), lake_with(folder, *hits)
    known = known or standing(kinds=HOSTS)
    return list(collect(table, replayed, gateways(table), known))


def places(misses: list[Any]) -> list[Any]:
    return [(m.layer, m.tier, m.target, m.evidence is not None) for m in misses]


def replayed(layer: str, tier: str | None = None, hit: bool = False) -> dict[str, Any]:
    held = {"request_id": "r1", "tenant": "acme", "layer": layer, "tier": tier, "hit": hit}
    return held | {"target": "redis", "ts": asked().ts}


def test_what_a_gateway_saw_goes_before_what_the_replay_found(tmp_path: Path) -> None:
    evidence = Evidence((looked("a"), looked("i", found="below_threshold")), redis_epoch=EPOCH)
    hits = [replayed("responses"), replayed("embeddings"), replayed("embeddings", "L1", hit=True)]
    misses = found(tmp_path, row_of(asked(), evidence), hits=hits)
    assert places(misses) == [
        ("responses", None, "redis", True),
        ("embeddings", None, "redis", False),
    ]
    assert [look.key for look in misses[0].looks] == ["a", "i"]


def test_one_hit_serves_a_layer_but_all_chunks_are_needed(tmp_path: Path) -> None:
    chunk = Looked("retrieval", "hit", "c1"), looked("c2", "retrieval")
    evidence = Evidence((looked("a"), HIT, *chunk, looked("v", "embeddings.l1")))
    misses = found(tmp_path, row_of(asked(), evidence))
    assert places(misses) == [
        ("retrieval", None, "redis", True),
        ("embeddings", "L1", "redis", True),
    ]
    assert [look.key for look in misses[0].looks] == ["c2"]


def test_a_hit_of_the_gateway_is_no_miss_whatever_the_replay_found(tmp_path: Path) -> None:
    assert not found(tmp_path, row_of(asked(), Evidence((HIT,))), hits=[replayed("responses")])


@pytest.mark.parametrize(
    ("cached", "ready", "missed"),
    [(0, True, True), (32, True, False), (None, False, True), (None, True, False)],
)
def test_a_host_missed_where_it_had_nothing_of_the_head(
    tmp_path: Path, cached: int | None, ready: bool, missed: bool
) -> None:
    evidence = Evidence((HIT,), host="vllm", host_ready=ready)
    misses = found(tmp_path, row_of(asked(cached_tokens=cached), evidence))
    assert places(misses) == ([("prefixes", None, "vllm", True)] if missed else [])


def test_a_host_missed_where_it_had_less_than_was_proven(tmp_path: Path) -> None:
    head = item(layer="prefixes")
    proven = {(head.item_id, "vllm"): {"resident": True, "evidence": "cached=96/96"}}
    known = standing([head], residency=proven, kinds=HOSTS)
    evidence = Evidence((HIT,), host="vllm", host_ready=True)
    for cached, count in ((64, 1), (96, 0), (128, 0)):
        row = row_of(asked(cached_tokens=cached), evidence)
        assert len(found(tmp_path, row, known=known)) == count


def test_the_redis_that_was_asked_is_told_by_its_process(tmp_path: Path) -> None:
    one = item()
    held = {(one.item_id, "b"): {"status": "warmed", "target_epoch": EPOCH, "ttl_s": None}}
    known = standing([one], held, kinds={"a": "redis", "b": "redis"})
    for epoch, target in ((EPOCH, "b"), ("run-9", None)):
        row = row_of(asked(), Evidence((looked("k"),), redis_epoch=epoch))
        assert [m.target for m in found(tmp_path, row, known=known)] == [target]


def silent(table: pa.Table) -> int:
    return int(silent_requests(table, gateways(table)).num_rows)


def numbered(count: int, evidence: Evidence | None, **fields: Any) -> list[dict[str, Any]]:
    ids = [f"{fields.get('source', 'log')}{n}{evidence is None}" for n in range(count)]
    return [row_of(asked(request_id=i, **fields), evidence) for i in ids]


def test_who_made_no_look_went_past_the_cache_where_others_of_the_log_look(tmp_path: Path) -> None:
    seen = numbered(3, Evidence((HIT,)))
    made = [*seen, *numbered(2, None), row_of(asked(), Evidence())]
    misses = found(tmp_path, *made)
    assert [type(m) for m in misses] == [Passed] * 3
    assert not silent(rows(*made))


def test_a_log_of_which_few_requests_have_evidence_is_no_gateways(tmp_path: Path) -> None:
    made = [*numbered(1, Evidence((HIT,))), *numbered(2, None)]
    assert not found(tmp_path, *made)
    assert silent(rows(*made)) == 2
    both = rows(*made, *numbered(2, Evidence((HIT,)), source="other"))
    assert gateways(both) == {"other"}


def test_what_a_cache_served_went_past_no_cache(tmp_path: Path) -> None:
    made = [*numbered(3, Evidence((HIT,))), *numbered(1, None, served_from="responses")]
    assert not found(tmp_path, *made)


@pytest.mark.parametrize(
    "extra", [None, "{}", '{"cache_evidence": null}', '{"x":"cache_evidence"}']
)
def test_what_is_no_evidence_is_none(extra: str | None) -> None:
    assert evidence_of(extra) is None


LOOK = {"layer": "responses", "found": "absent", "key": "k"}


@pytest.mark.parametrize(
    ("held", "place"),
    [
        ("a secret text", ""),
        ([], ""),
        ({"looked": None}, ".looked"),
        ({"looked": [7]}, ".looked"),
        ({"looked": [LOOK | {"key": 5}]}, ".looked.key"),
        ({"looked": [LOOK | {"key": None}]}, ".looked.key"),
        ({"looked": [{"layer": "responses", "found": "absent"}]}, ".looked.key"),
        ({"looked": [LOOK | {"layer": 7}]}, ".looked.layer"),
        ({"looked": [LOOK | {"found": "somewhere"}]}, ".looked.found"),
        ({"looked": [LOOK | {"characters": "x"}]}, ".looked.characters"),
        ({"looked": [LOOK | {"similarity": "x"}]}, ".looked.similarity"),
        ({"looked": [LOOK | {"error": 5}]}, ".looked.error"),
        ({"looked": [LOOK | {"fields": ["a", 1]}]}, ".looked.fields"),
        ({"looked": [LOOK | {"fields": "a"}]}, ".looked.fields"),
        ({"bypass": "a secret text"}, ".bypass"),
        ({"host": 5}, ".host"),
        ({"host_ready": "yes"}, ".host_ready"),
    ],
)
def test_evidence_of_another_form_is_said_so_and_hides_no_request(
    tmp_path: Path, held: Any, place: str
) -> None:
    made = row_of(asked()) | {"extra": json.dumps({FIELD: held})}
    [one] = found(tmp_path, made, hits=[replayed("responses")])
    assert isinstance(one, Unread)
    assert one.why == f"cache_evidence{place} is not as warmup_lib/evidence.py has it"
    assert evidence_of(made["extra"]) is None
    served = row_of(asked(served_from="responses")) | {"extra": made["extra"]}
    assert not found(tmp_path / "served", served)


def test_what_a_gateway_says_besides_is_passed_over(tmp_path: Path) -> None:
    held = {"looked": [LOOK | {"similarity": 1, "threshold": None, "more": 5}], "more": [{}]}
    made = row_of(asked()) | {"extra": json.dumps({FIELD: held})}
    [one] = found(tmp_path, made)
    assert one.looks == (Looked("responses", "absent", "k", similarity=1),)


def test_a_request_that_several_targets_missed_is_told_once(tmp_path: Path) -> None:
    at = [replayed("responses", hit=target == "b") | {"target": target} for target in "cba"]
    tier = replayed("responses", "L9")
    assert sorted(places(found(tmp_path, row_of(asked()), hits=[*at, tier])), key=str) == [
        ("responses", "L9", "redis", False),
        ("responses", None, "a", False),
    ]


def test_a_miss_knows_its_layers_word() -> None:
    assert Miss(asked(), "embeddings", "L1", None).word == "embeddings.l1"
    assert Miss(asked(), "responses", None, None).word == "responses"
    assert KEYS.identity(QUESTION).response == asked().response_digest
