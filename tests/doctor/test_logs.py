"""Each trap is found in a log that has it, and no other; a sound log has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.doctor.rows import BEGIN, KEYS, Change, evidence, keyed, log_of, row, rows
from warmup_lib.doctor import (
    bypass,
    key_dimensions,
    kv_length,
    out_of_step,
    tenant,
    tokenisation,
)
from warmup_lib.doctor.base import Part
from warmup_lib.doctor.log import Log
from warmup_lib.doctor.splits import find_splits
from warmup_lib.evidence import FIELD, Evidence
from warmup_lib.keys import canonical_text


def looked_at(log: Log) -> dict[str, Part]:
    splits = find_splits(log)
    return {
        "tokenisation": tokenisation.look_at_log(log, splits),
        "kv_length": kv_length.look_at_log(log),
        "tenant": tenant.look_at_log(log, KEYS),
        "bypass": bypass.look_at_log(log, splits),
        "key_dimensions": key_dimensions.look_at_log(log, splits),
        "out_of_step": out_of_step.look_at_log(log),
    }


def found(log: Log) -> dict[str, Part]:
    return {name: part for name, part in looked_at(log).items() if part.status == "found"}


def with_key(make: Callable[[dict[str, Any]], str]) -> Change:
    def change(_: int, held: dict[str, Any]) -> dict[str, Any]:
        return held | {FIELD: evidence(held, key=make(held)).to_dict()}

    return change


def test_a_sound_log_has_no_trap(tmp_path: Path) -> None:
    assert {n: p.status for n, p in looked_at(log_of(tmp_path, rows(200))).items()} == {
        "tokenisation": "ok",
        "kv_length": "ok",
        "tenant": "ok",
        "bypass": "ok",
        "key_dimensions": "ok",
        "out_of_step": "ok",
    }


def test_without_keys_nothing_is_said_of_them(tmp_path: Path) -> None:
    bare = [{k: v for k, v in one.items() if k != FIELD} for one in rows(50)]
    parts = looked_at(log_of(tmp_path, bare))
    assert parts["tokenisation"].status == parts["key_dimensions"].status == "not_checked"


def test_a_key_of_cut_text_is_one_for_different_prompts(tmp_path: Path) -> None:
    change = with_key(lambda held: keyed(held["tenant"] + held["prompt"][:20]))
    log = log_of(tmp_path, rows(80, change))
    assert set(found(log)) == {"tokenisation"}
    assert (
        "standing for different prompts: 2 keys (80 requests)"
        in found(log)["tokenisation"].evidence
    )


def test_a_cut_that_moves_gives_one_prompt_several_keys(tmp_path: Path) -> None:
    def change(_: int, held: dict[str, Any]) -> dict[str, Any]:
        cut = 25 + int(keyed(held["request_id"])[:4], 16) % 3  # by nothing that the log holds
        return held | {FIELD: evidence(held, key=keyed(held["prompt"][:cut])).to_dict()}

    assert "tokenisation" in found(log_of(tmp_path, rows(80, change)))


def test_keys_of_raw_text_are_several_for_one_prompt(tmp_path: Path) -> None:
    def change(number: int, held: dict[str, Any]) -> dict[str, Any]:
        raw = held | {"prompt": held["prompt"].replace(" ", " " * (1 + number // 8 % 2))}
        return raw | {FIELD: evidence(raw, key=keyed(raw["tenant"] + raw["prompt"])).to_dict()}

    log = log_of(tmp_path, rows(80, change))
    assert set(found(log)) == {"tokenisation"}
    assert "8 prompts have 16 keys" in found(log)["tokenisation"].evidence


def test_a_noted_length_tells_a_cut_where_few_requests_have_it(tmp_path: Path) -> None:
    def change(number: int, held: dict[str, Any]) -> dict[str, Any] | None:
        if number not in (40, 41, 42):
            return None
        cut = canonical_text(held["prompt"])[:25]
        noted = evidence(held, key=keyed(held["tenant"] + held["prompt"]), characters=len(cut))
        return held | {FIELD: noted.to_dict()}

    assert set(found(log_of(tmp_path, rows(80, change)))) == {"tokenisation"}


@pytest.mark.parametrize("name", ["locale", "device", "ab_arm"])
def test_a_dimension_in_the_key_is_named(tmp_path: Path, name: str) -> None:
    def key(held: dict[str, Any]) -> str:
        return keyed(f"{held['tenant']}{held['prompt']}{held.get(name) or held['extra'][name]}")

    log = log_of(tmp_path, rows(240, with_key(key)))
    assert set(found(log)) == {"key_dimensions"}
    assert found(log)["key_dimensions"].evidence.endswith(f"keys by {name}")


def test_all_dimensions_of_a_concatenated_key_are_named(tmp_path: Path) -> None:
    change = with_key(
        lambda h: keyed(f"{h['tenant']}{h['prompt']}{h['locale']}{h['ab_arm']}{h['extra']}")
    )
    evidence_of = found(log_of(tmp_path, rows(240, change)))["key_dimensions"].evidence
    assert all(name in evidence_of for name in ("locale", "ab_arm", "device"))


def test_a_dimension_that_changes_answers_is_in_the_key_rightly(tmp_path: Path) -> None:
    def change(_: int, held: dict[str, Any]) -> dict[str, Any]:
        key = keyed(f"{held['tenant']}{held['prompt']}{held['locale']}")
        answer = {"response": f"{held['prompt']}, said in {held['locale']}"}
        return held | answer | {FIELD: evidence(held, key=key).to_dict()}

    log = log_of(tmp_path, rows(240, change))
    assert not found(log)
    told = looked_at(log)["key_dimensions"].evidence
    assert told.endswith("keep one key each but for what changes answers; answers depend on locale")

    def both(number: int, held: dict[str, Any]) -> dict[str, Any]:
        key = keyed(f"{held['tenant']}{held['prompt']}{held['locale']}{held['ab_arm']}")
        return change(number, held) | {FIELD: evidence(held, key=key).to_dict()}

    part = found(log_of(tmp_path, rows(240, both)))["key_dimensions"]
    assert part.evidence.endswith("keys by ab_arm; answers depend on locale")


def test_a_request_id_in_the_key_is_a_bypass(tmp_path: Path) -> None:
    log = log_of(tmp_path, rows(80, with_key(lambda held: keyed(held["request_id"]))))
    assert set(found(log)) == {"bypass"}
    assert "8 prompts have a new key with every request" in found(log)["bypass"].evidence


def test_a_key_without_the_tenant_is_found(tmp_path: Path) -> None:
    def change(number: int, held: dict[str, Any]) -> dict[str, Any]:
        same = held | {"prompt": f"What are your opening hours on day {number % 4}?"}
        return same | {FIELD: evidence(same, key=keyed(same["prompt"])).to_dict()}

    shared = rows(
        80, lambda n, held: change(n, held | {"tenant": ("acme", "nordwind")[n // 4 % 2]})
    )
    log = log_of(tmp_path, shared)
    assert set(found(log)) == {"tenant"}
    assert "shared by several tenants: 4 keys" in found(log)["tenant"].evidence


def test_a_look_under_another_tenants_keys_is_found(tmp_path: Path) -> None:
    def change(number: int, held: dict[str, Any]) -> dict[str, Any] | None:
        if number != 17:
            return None
        return held | {FIELD: evidence(held | {"tenant": "acme"}).to_dict()}

    log = log_of(tmp_path, rows(80, change))
    assert set(found(log)) == {"tenant"}
    assert "looked up under another tenant's keys: 1 request" in found(log)["tenant"].evidence


def test_a_default_in_the_place_of_a_tenant_is_found_unless_it_is_the_only_one(
    tmp_path: Path,
) -> None:
    mixed = [row(n, tenant="default") if n % 9 == 0 else row(n) for n in range(60)]
    assert "default in the tenant's place" in found(log_of(tmp_path, mixed))["tenant"].evidence
    alone = [row(n, tenant="default") for n in range(60)]
    assert not found(log_of(tmp_path, alone))


def test_a_tenant_can_be_called_by_a_word_that_is_a_default_elsewhere(tmp_path: Path) -> None:
    def asked(tenant: str, session: str, number: int) -> dict[str, Any]:
        return row(number, tenant=tenant, session_id=session)

    public = [asked("Public", f"p{n}", n) for n in range(20)]
    acme = [asked("acme", f"a{n}", 20 + n) for n in range(20)]
    assert not found(log_of(tmp_path, [*public, *acme]))
    same = [asked("Public", f"a{n}", 40 + n) for n in range(5)]
    part = found(log_of(tmp_path, [*public, *acme, *same]))["tenant"]
    assert "with a default in the tenant's place: 25 requests" in part.evidence


def test_rows_that_name_no_tenant_are_counted(tmp_path: Path) -> None:
    nameless = [{**one, "tenant": ""} if n in (3, 5) else one for n, one in enumerate(rows(60))]
    assert "without a tenant: 2 rows" in found(log_of(tmp_path, nameless))["tenant"].evidence


def test_stray_headers_and_parameters_are_a_bypass(tmp_path: Path) -> None:
    sick = rows(80)
    for n in range(3, 80, 8):
        sick[n] |= {"cache_control": "no-cache"}
    sick[61] |= {"skip_cache": True}
    part = found(log_of(tmp_path, sick))["bypass"]
    assert "11 of 80 requests" in part.evidence
    assert "10 by header, 1 by parameter" in part.evidence


def test_callers_who_always_go_round_mean_it(tmp_path: Path) -> None:
    def change(number: int, held: dict[str, Any]) -> dict[str, Any] | None:
        if number % 5:
            return None
        return held | {"cache_control": "no-cache", "extra": {"user_agent": "evaluation/1.2"}}

    log = log_of(tmp_path, rows(100, change))
    assert not found(log)
    assert "20 of 100 requests go round" in looked_at(log)["bypass"].evidence


def test_when_most_go_round_it_is_asked_even_where_all_mean_it(tmp_path: Path) -> None:
    log = log_of(tmp_path, rows(60, lambda _, held: held | {"cache_control": "no-store"}))
    assert "60 of 60 requests go round" in found(log)["bypass"].evidence


def test_requests_that_no_route_looks_up_are_a_bypass(tmp_path: Path) -> None:
    bare = Evidence(host="a", host_ready=True).to_dict()
    log = log_of(tmp_path, rows(80, lambda n, h: h | {FIELD: bare} if n % 20 == 7 else None))
    assert set(found(log)) == {"bypass"}
    assert "4 of 80 requests no look was made" in found(log)["bypass"].evidence


def test_a_moment_in_the_system_prompt_and_an_id_in_the_prompt_are_a_bypass(
    tmp_path: Path,
) -> None:
    heads = [row(n, system_prompt=f"Now: 2026-03-16 09:{n % 60:02}. Be brief.") for n in range(40)]
    heads[9] |= {"cache_control": "no-cache"}
    told = found(log_of(tmp_path, heads))["bypass"].evidence
    assert "40 system prompts" in told
    assert "1 of 40 requests go round the caches" in told
    ids = [row(n, prompt=f"Help me. X-Request-ID: {keyed(str(n))[:20]}") for n in range(40)]
    assert "prompts differ in a request's id" in found(log_of(tmp_path, ids))["bypass"].evidence


def test_an_id_that_a_question_asks_about_is_no_bypass(tmp_path: Path) -> None:
    orders = [row(n, prompt=f"Where is my order {UUID(int=n)}?") for n in range(100, 110)]
    traces = [row(n, prompt=f"Explain span id: {n:08x} in the viewer") for n in range(110, 120)]
    pasted = [row(n, prompt=f"It failed. Request ID: {n:08x}") for n in range(120, 124)]
    assert not found(log_of(tmp_path, [*rows(100), *orders, *traces, *pasted]))


def test_parameters_that_are_new_with_every_request_are_a_bypass(tmp_path: Path) -> None:
    seeds = [row(n, params={"seed": n}) for n in range(60)]
    assert "8 prompts have new parameters" in found(log_of(tmp_path, seeds))["bypass"].evidence
    two = [row(n, params={"temperature": n // 8 % 3 / 10}) for n in range(60)]
    assert "bypass" not in found(log_of(tmp_path, two))


def test_prompts_padded_or_cut_to_one_length_are_found(tmp_path: Path) -> None:
    padded = [row(n, prompt_tokens=2048, prompt="word " * (5 + n % 20) + "?") for n in range(40)]
    part = found(log_of(tmp_path, padded))
    assert set(part) == {"kv_length"}
    assert "40 of 40 prompts have 2,048 tokens" in part["kv_length"].evidence


def test_short_prompts_in_several_scripts_have_no_static_length(tmp_path: Path) -> None:
    texts = [word * (1 + n) for n in range(6) for word in ("你好吗", "ok ", "authorisation ")]
    short = [row(n, prompt=texts[n % len(texts)], prompt_tokens=10 + n * 7 % 4) for n in range(300)]
    assert "kv_length" not in found(log_of(tmp_path, short))


def test_one_prompt_asked_again_and_again_has_one_length(tmp_path: Path) -> None:
    assert not found(log_of(tmp_path, [row(8 * n) for n in range(60)]))


def test_long_prompts_rare_tenants_and_many_adapters_are_sound(tmp_path: Path) -> None:
    odd = [
        *rows(60),
        *(row(n, tenant=f"tenant-{n}", prompt=f"Rare question {n}") for n in range(100, 130)),
        *(row(n, adapter=f"adapter-{n % 25}") for n in range(200, 260)),
        *(row(n, prompt="Sum up: " + "text " * n, prompt_tokens=n) for n in range(3000, 3020)),
    ]
    assert not found(log_of(tmp_path, odd))


def test_traffic_before_readiness_is_measured(tmp_path: Path) -> None:
    def change(number: int, held: dict[str, Any]) -> dict[str, Any] | None:
        if number > 3:
            return None
        early = Evidence(evidence(held).looked, host="a", host_ready=False)
        return held | {"status": 503, FIELD: early.to_dict()}

    part = found(log_of(tmp_path, rows(60, change)))
    assert set(part) == {"out_of_step"}
    assert part["out_of_step"].evidence == (
        "4 requests reached a host that was not ready, up to 4.0 s too early"
    )


def test_without_notes_503s_at_the_start_tell_it(tmp_path: Path) -> None:
    bare = [{k: v for k, v in one.items() if k != FIELD} for one in rows(30)]
    early = [one | {"status": 503} if n < 3 else one for n, one in enumerate(bare)]
    assert "3 requests" in found(log_of(tmp_path, early))["out_of_step"].evidence
    later = [one | {"status": 503} if n in (20, 21, 22) else one for n, one in enumerate(bare)]
    assert "out_of_step" not in found(log_of(tmp_path, later))
    shed = [one | {"status": 503} if n % 20 == 0 else one for n, one in enumerate(bare)]
    part = looked_at(log_of(tmp_path, shed))["out_of_step"]
    assert (part.status, part.evidence[:26]) == ("ok", "1 request, too few to tell")


def test_warm_up_that_is_early_is_told_apart(tmp_path: Path) -> None:
    first = row(0, request_id="warmup-1", ts=BEGIN.isoformat())
    first[FIELD] = Evidence(host="a", host_ready=False).to_dict()
    log = log_of(tmp_path, [first, *rows(40)[1:]])
    assert "1 of them warm-up, up to 1.0 s too early" in found(log)["out_of_step"].evidence
