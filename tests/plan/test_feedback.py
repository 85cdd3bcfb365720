"""What was asked for in vain is left out, and what was never hit counts for less and says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from tests.plan.building import DAY, embed, fill, head, heat, prompt, rows_of
from warmup_lib.config import Config
from warmup_lib.lake import Lake
from warmup_lib.layers.base import item_id
from warmup_lib.plan.diff import diff
from warmup_lib.plan.feedback import Feedback, Unhit
from warmup_lib.plan.stage import run
from warmup_lib.stage import StageReport

FIRST, SECOND, THIRD = DAYS = "2026-03-15", "2026-03-16", "2026-03-17"
TENANT = "acme"
HEADS = ("h", "k")


def config(items: int = 2, **more: Any) -> Config:
    layers = {"responses": {"items": items, "generate": 0}, "embeddings": {"items": 3}}
    layers |= {"weights": {"enabled": False}, "adapters": {"enabled": False}}
    return Config.model_validate({"encoder": {"threshold": 0.8}, "layers": layers, **more})


def write_day(lake: Lake, day: str, **requests: int) -> None:
    """Add a day on which prompts were asked so often, and the heads once each."""
    prompts = [prompt(digest, count, day=day) for digest, count in requests.items()]
    lake.replace("prompts", {"day": day}, rows_of("prompts", prompts))
    lake.replace("heads", {"day": day}, rows_of("heads", [head(h, 9, day=day) for h in HEADS]))
    embed(lake, {f"t-{name}": 40.0 * n for n, name in enumerate("abcd")}, day=day)


def write_heat(lake: Lake, day: str, **counts: float) -> None:
    heads = {("head", TENANT, h): 9.0 for h in HEADS}
    heat(lake, day, {("prompt", TENANT, name): count for name, count in counts.items()} | heads)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = fill(tmp_path / "lake", {DAY: []})
    write_day(made, DAY, a=4, b=3, c=1, d=1)
    write_heat(made, DAY, a=4, b=3, c=1, d=1)
    return made


def stood(lake: Lake, plan_id: str) -> None:
    """Say that every item of a plan was proven resident."""
    items = lake.read("plan", {"plan_id": plan_id}, ["item_id", "layer", "tenant"])
    rows = [row | {"target": "redis", "resident": True} for row in items.to_pylist()]
    lake.replace("residency", {"plan_id": plan_id}, rows_of("residency", rows))


def hits(lake: Lake, plan_id: str, day: str, *served: str, **meta: bool) -> None:
    """Write what replaying a day showed: one request each was served by these, text and answer."""
    rows = [
        {
            "request_id": f"{day}-{digest}",
            "tenant": TENANT,
            "layer": layer,
            "target": "redis",
            "hit": True,
            "item_id": item,
        }
        for digest in served
        for layer, item in (
            ("responses", answer(digest)),
            ("embeddings", item_id("embeddings", TENANT, f"t-{digest}")),
        )
    ]
    meta = {"whole_day": True, "in_sample": False} | meta
    partition = {"plan_id": plan_id, "window": day}
    lake.replace("hits", partition, rows_of("hits", rows), meta)


def answer(digest: str) -> str:
    return item_id("responses", TENANT, digest, "small")


def planned(lake: Lake, report: StageReport, layer: str = "responses") -> dict[str, str]:
    rows = lake.read("plan", {"plan_id": report.facts["plan_id"]})
    rows = rows.filter(pc.and_(pc.equal(rows["layer"], layer), pc.is_null(rows["tier"])))
    return dict(zip(rows["key_digest"].to_pylist(), rows["reason"].to_pylist(), strict=True))


def left_out(lake: Lake, report: StageReport, layer: str = "responses") -> dict[str, str]:
    rows = lake.read("left_out", {"plan_id": report.facts["plan_id"]})
    rows = rows.filter(pc.equal(rows["layer"], layer))
    return dict(zip(rows["digest"].to_pylist(), rows["reason"].to_pylist(), strict=True))


def nights(lake: Lake, *served: str, asked: str = "cd", days: int = 3, **meta: bool) -> StageReport:
    """Plan, serve some days on which only some prompts are asked, and plan again."""
    first = run(lake, DAY, config())
    for day in DAYS[:days]:
        write_day(lake, day, **dict.fromkeys(asked, 1))
        write_heat(lake, day, a=4, b=3, c=1.5, d=1.5)
    stood(lake, first.facts["plan_id"])
    for day in DAYS[:days]:
        hits(lake, first.facts["plan_id"], day, *served, **meta)
    return run(lake, DAYS[days - 1], config(), force=True)


def test_an_item_that_was_never_hit_loses_its_place(lake: Lake) -> None:
    assert set(planned(lake, run(lake, DAY, config()))) == {"a", "b"}
    report = nights(lake, "b")
    # a: 4 expected, 12 were on the three days: 4 / (1 + 12).
    assert set(planned(lake, report)) == {"b", "c"}
    assert left_out(lake, report)["a"] == "never_hit: none in 3 days"
    assert left_out(lake, report)["d"] == "below_budget"
    assert report.facts["left_out"]["responses"] == {"below_budget": 1, "never_hit": 1}
    assert left_out(lake, report, "embeddings")["t-a"] == "never_hit: none in 3 days"
    assert report.facts["feedback"]["never_hit"] == {"left_out": 2, "planned": 0}


def test_where_there_is_room_it_stays_and_says_what_came_of_it(lake: Lake) -> None:
    nights(lake, "b")
    report = run(lake, THIRD, config(4), force=True)
    reasons = planned(lake, report)
    assert reasons["a"].endswith(
        "; on the last 3 days it stood ready, 12.0 were expected and none came"
    )
    assert "none came" not in reasons["b"]
    rows = lake.read("plan", {"plan_id": report.facts["plan_id"]})
    [row] = rows.filter(pc.equal(rows["item_id"], answer("a"))).to_pylist()
    assert row["heat_micro"] == 4_000_000 // 13
    assert report.facts["feedback"]["never_hit"] == {"left_out": 1, "planned": 1}


@pytest.mark.parametrize("meta", [{"whole_day": False}, {"in_sample": True}])
def test_windows_that_are_no_later_whole_day_teach_nothing(
    lake: Lake, meta: dict[str, bool]
) -> None:
    assert set(planned(lake, nights(lake, "b", **meta))) == {"a", "b"}


def test_who_was_asked_for_was_not_forgotten(lake: Lake) -> None:
    """A request of its own says that it is wanted, whatever became of it."""
    assert set(planned(lake, nights(lake, "b", asked="acd"))) == {"a", "b"}


def test_what_did_not_stand_there_is_not_to_blame(lake: Lake) -> None:
    first = run(lake, DAY, config())
    nights(lake, "b")
    lake.drop("residency", {"plan_id": first.facts["plan_id"]})
    assert set(planned(lake, run(lake, THIRD, config(), force=True))) == {"a", "b"}


def test_two_days_without_a_hit_are_a_weekend(lake: Lake) -> None:
    assert set(planned(lake, nights(lake, "b", days=2))) == {"a", "b"}


def test_what_the_forecast_took_back_itself_is_not_taken_twice() -> None:
    unhit = Unhit((8_000_000, 4_000_000))
    assert unhit.left(3_000_000) == 3_000_000 // 7
    assert unhit.left(100_000) == int(100_000 / 1.2)
    assert unhit.left(0) == 0
    assert Unhit.of({"two": [1, 1], "three": [1, 1, 1]}) == {"three": Unhit((1, 1, 1))}


def test_the_same_lessons_have_the_same_digest_and_none_has_none() -> None:
    assert Feedback().digest() == {}
    one, other = Feedback(unhit={"a": Unhit((1, 2))}), Feedback(unhit={"a": Unhit((1, 3))})
    assert one.digest().keys() == {"unhit"}
    assert one.digest() != other.digest()
    assert one.digest() == Feedback(unhit={"a": Unhit((1, 2))}).digest()


def test_the_demand_that_answers_share_loses_what_they_lose(lake: Lake) -> None:
    """The prompt's own heat goes down where coverage counts it, and that of no other."""
    report = nights(lake, "b")
    rows = lake.read("plan", {"plan_id": report.facts["plan_id"]})
    expected = {
        row["key_digest"]: row["expected_micro"]
        for row in rows.to_pylist()
        if row["layer"] == "responses"
    }
    assert expected == {"b": 3_000_000, "c": 1_500_000}


def in_vain(lake: Lake, plan_id: str, day: str, digests: str, served: str = "") -> None:
    """Have each of these asked for three times under a wrong key, and others served once."""
    ids = {f"{digest}{n}": digest for digest in digests for n in range(3)}
    asked = [
        {"request_id": ident, "tenant": TENANT, "response_digest": digest}
        for ident, digest in ids.items()
    ]
    asked += [
        {"request_id": f"{day}-{digest}", "tenant": TENANT, "response_digest": digest}
        for digest in served
    ]
    hits(lake, plan_id, day, *served)
    told = {"tenant": TENANT, "layer": "responses", "source": "gateway", "cause": "key_tenant"}
    causes = [{"request_id": ident, "evidence": "is=unknown", **told} for ident in ids]
    lake.replace("requests", {"day": day}, rows_of("requests", asked))
    meta = {"whole_day": True, "in_sample": False}
    partition = {"plan_id": plan_id, "window": day}
    lake.replace("causes", partition, rows_of("causes", causes), meta)


def another_day(lake: Lake, day: str) -> None:
    write_day(lake, day, a=4, b=3, c=1, d=1)
    write_heat(lake, day, a=4, b=3, c=1, d=1)


def test_what_is_asked_for_in_vain_is_left_out_and_the_plan_says_so(lake: Lake) -> None:
    first = run(lake, DAY, config())
    another_day(lake, FIRST)
    in_vain(lake, first.facts["plan_id"], FIRST, "ab")
    report = run(lake, FIRST, config())  # unforced: a plan that holds what is blocked can't wait
    assert report.facts["decision"] == "planned"
    assert planned(lake, report) == {}
    assert set(left_out(lake, report).values()) == {"key_mismatch: key_tenant"}
    assert report.facts["items"]["embeddings"] == 5
    [told] = report.facts["feedback"]["blocked"]
    assert (told["items"], told["whole"], told["look_ups"]) == (4, True, 6)
    assert told["link"] == "docs/causes.md#key_tenant"
    assert report.notes[0].startswith("acme: nothing is planned for responses, for all 6 requests")
    # While nothing changes, the plan without it stands, and it still says so.
    another_day(lake, SECOND)
    again = run(lake, SECOND, config())
    assert (again.facts["decision"], again.notes[0]) == ("wait", report.notes[0])
    assert again.facts["feedback"]["blocked"][0]["cause"] == "key_tenant"


def test_a_block_that_is_lifted_makes_a_new_plan(lake: Lake) -> None:
    first = run(lake, DAY, config())
    another_day(lake, FIRST)
    in_vain(lake, first.facts["plan_id"], FIRST, "ab")
    second = run(lake, FIRST, config())
    another_day(lake, SECOND)
    hits(lake, second.facts["plan_id"], SECOND, "a")
    lake.replace(
        "causes",
        {"plan_id": second.facts["plan_id"], "window": SECOND},
        rows_of("causes", []),
        {"whole_day": True, "in_sample": False},
    )
    third = run(lake, SECOND, config())
    assert third.facts["decision"] == "planned"
    assert set(planned(lake, third)) == {"a", "b"}


def test_one_item_is_blocked_alone_and_another_has_its_place(lake: Lake) -> None:
    first = run(lake, DAY, config())
    another_day(lake, FIRST)
    in_vain(lake, first.facts["plan_id"], FIRST, "a", served="b")
    report = run(lake, FIRST, config())
    assert set(planned(lake, report)) == {"b", "c"}
    assert left_out(lake, report)["a"] == "key_mismatch: key_tenant"


def test_an_increment_does_not_count_on_what_is_blocked(lake: Lake) -> None:
    first = run(lake, DAY, config())
    another_day(lake, FIRST)
    in_vain(lake, first.facts["plan_id"], FIRST, "a", served="b")
    report = run(lake, FIRST, config(), strategy="incremental")
    assert set(planned(lake, report)) == {"c"}  # b stands, a is of no use
    assert left_out(lake, report)["a"] == "key_mismatch: key_tenant"


def test_diff_says_why_an_item_was_dropped(lake: Lake) -> None:
    first = run(lake, DAY, config())
    second = nights(lake, "b")
    found = diff(lake, first.facts["plan_id"], second.facts["plan_id"])["layers"]["responses"]
    [dropped] = found["items"]["dropped"]
    assert (dropped["item_id"], dropped["left_out"]) == (answer("a"), "never_hit: none in 3 days")
    assert found["why_dropped"] == {"never_hit": 1}


def test_feedback_is_the_same_again(lake: Lake) -> None:
    report = nights(lake, "b")
    assert run(lake, THIRD, config(), force=True).facts == report.facts
