"""The closed loop on a real Redis: what a night was asked for in vain, the next one leaves out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.apply.server import Server
from tests.plan.conftest import SECRET
from warmup_lib import pipeline
from warmup_lib.config import Config
from warmup_lib.embed.opening import open_encoder
from warmup_lib.keys import Dimension, Keys, Request, embedding_text
from warmup_lib.lake import Lake
from warmup_lib.reader import Cache, Reader, log_row
from warmup_lib.stage import StageReport

pytestmark = pytest.mark.stack

MONDAY = datetime(2026, 3, 9, 9, tzinfo=UTC)
FORMS = ["Write a letter of refusal", "Fill in the form for a new passport"]
PINNED = "How do I prepare for the spring sale?"
LAUNCH = "When does the new loyalty programme begin?"
USUAL = [
    "How do I freeze my card?",
    "Where is my parcel now?",
    "Can I change the delivery address?",
    "What does the premium plan cost?",
    "Why was my payment declined?",
]
SYSTEM = "You help the customers of a shop."


def request_of(tenant: str, prompt: str, session: str = "") -> Request:
    return Request(
        tenant, "m", prompt, system_prompt=SYSTEM, dimensions={"session_id": session or None}
    )


class Loop:
    """A lake, a Redis, and a gateway before it that may put a field of its own into its keys."""

    def __init__(self, folder: Path, url: str) -> None:
        forms, pinned = folder / "forms.jsonl", folder / "pinned.jsonl"
        for path, prompts in ((forms, FORMS), (pinned, [PINNED])):
            rows = [self._listed(prompt) for prompt in prompts]
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        off = {name: {"enabled": False} for name in ("weights", "adapters", "prefixes")}
        lists = {"output_templates": {"path": str(forms)}, "pinned": {"path": str(pinned)}}
        self.config = Config.model_validate(
            {
                "lake": f"file://{folder}/lake",
                "targets": [{"kind": "redis", "name": "redis", "url": url}],
                "layers": {
                    **off,
                    "retrieval": {"enabled": False},
                    "responses": {"items": 40, "generate": 0},
                },
                "plan": {"sources": lists},
            }
        )
        self.folder, self.url = folder, url
        self.encoder = open_encoder(self.config)
        self.found: list[str | None] = []

    @staticmethod
    def _listed(prompt: str) -> Mapping[str, Any]:
        row = {"tenant": "acme", "model": "m", "prompt": prompt, "system_prompt": SYSTEM}
        return row | {"response": f"an answer to: {prompt}"}

    def _encode(self, text: str) -> list[float]:
        [vector] = self.encoder.encode([embedding_text(text)])
        return [float(x) for x in vector]

    def log(self, day: int, rows: Sequence[Mapping[str, Any]]) -> str:
        path = self.folder / f"day-{day}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        pipeline.ingest(self.config, [path], "jsonl")
        return (MONDAY + timedelta(days=day)).date().isoformat()

    def history(self) -> str:
        """Log a day without a cache: the usual questions, and much of one that nobody asks again.

        Both tenants ask all of them.
        """
        asked = [(t, q) for t in ("acme", "zeta") for q in USUAL for _ in range(4)]
        asked += [("acme", LAUNCH)] * 9
        rows = []
        for n, (tenant, prompt) in enumerate(asked):
            at = MONDAY + timedelta(minutes=n)
            row = {"request_id": f"r0-{n}", "ts": at.isoformat(), "tenant": tenant, "model": "m"}
            row |= {"prompt": prompt, "system_prompt": SYSTEM, "session_id": f"s{n}"}
            rows.append(row | {"response": f"an answer to: {prompt}", "status": 200})
        return self.log(0, rows)

    def flush(self) -> None:
        """Empty the Redis."""
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def serve(self, day: int, wrong: Sequence[str] = (), *, keeping: bool = False) -> str:
        """Have the gateway serve the usual questions, with the session in some tenants' keys.

        Keeping: it stores what it did not find, and each session asks again.
        """
        return self.log(day, asyncio.run(self._serve(day, wrong, keeping)))

    async def _serve(self, day: int, wrong: Sequence[str], keeping: bool) -> list[dict[str, Any]]:
        vectors = Lake(self.config.lake).partitions("vectors")
        rows, self.found = [], []
        for tenant in ("acme", "zeta"):
            extra = {"session_id": Dimension()} if tenant in wrong else {}
            keys = Keys(SECRET.encode(), dimensions=extra)
            fingerprint, size = vectors[0]["encoder"], self.encoder.dimension
            cache = Cache(self.url, keys, fingerprint, size, self._encode, timeout_s=10.0)
            async with Reader(cache) as reader:
                for n, prompt in enumerate(USUAL * 2):
                    session = f"{tenant}-{n % len(USUAL) if keeping else n}"
                    at = MONDAY + timedelta(days=day, minutes=n)
                    request = request_of(tenant, prompt, session)
                    found = await reader.lookup(request)
                    if keeping and not found.hit:
                        await reader.store(request, f"an answer to: {prompt}")
                    self.found.append(found.layer)
                    messages = [
                        {"role": "system", "content": SYSTEM},
                        {"role": "user", "content": prompt},
                    ]
                    told = {"session_id": session, "status": 200}
                    if found.answer is None:
                        told["response"] = f"an answer to: {prompt}"
                    ident = f"r{day}-{tenant}-{n}"
                    row = log_row(ident, at, request, messages, found, headers={}, **told)
                    rows.append(row)
        return rows

    def night(self, day: str) -> StageReport:
        """Plan after a day and warm it."""
        pipeline.build_day(self.config, day)
        made = pipeline.plan(self.config, day)
        done = pipeline.apply(self.config, made.facts["plan_id"])
        assert not done.facts["unavailable"]
        return made

    def check(self, plan: StageReport, day: str) -> Mapping[str, int]:
        """Verify and explain a plan on a day; return the causes by layer."""
        plan_id = plan.facts["plan_id"]
        pipeline.verify(self.config, plan_id, day=day)
        explained = pipeline.explain(self.config, plan_id, day=day)
        causes: Mapping[str, int] = explained.facts["by_layer"].get("responses", {})
        return causes

    def prompts(self, plan: StageReport, tenant: str) -> dict[str, str]:
        """Return the prompts whose answers are planned for a tenant, with the reason."""
        rows = Lake(self.config.lake).read("plan", {"plan_id": plan.facts["plan_id"]}).to_pylist()
        ours = [r for r in rows if (r["layer"], r["tenant"]) == ("responses", tenant)]
        return {row["text"]: row["reason"] for row in ours}


@pytest.fixture
def loop(tmp_path: Path, stack_artifacts: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    monkeypatch.setenv("WARMUP_SECRET", SECRET)
    server = Server(tmp_path / "redis", stack_artifacts)
    yield Loop(tmp_path, server.url)
    server.stop()


def test_what_is_asked_for_in_vain_is_not_warmed_again_until_it_is_mended(loop: Loop) -> None:
    first = loop.night(loop.history())
    assert loop.prompts(first, "acme").keys() == {*USUAL, LAUNCH, *FORMS, PINNED}
    assert loop.prompts(first, "zeta").keys() == {*USUAL}

    # zeta's gateway puts the session into its keys; nobody asks for the launch or the lists.
    day = loop.serve(1, wrong=["zeta"])
    assert loop.check(first, day) == {"key_dimension": 10}
    assert set(loop.found) == {"responses", None}
    second = loop.night(day)
    assert loop.prompts(second, "zeta") == {}
    assert loop.prompts(second, "acme").keys() == {*USUAL, LAUNCH, *FORMS, PINNED}
    [blocked] = second.facts["feedback"]["blocked"]
    assert (blocked["tenant"], blocked["layer"], blocked["items"]) == ("zeta", "responses", 5)
    assert (blocked["cause"], blocked["evidence"]) == ("key_dimension", "field=session_id")
    assert second.facts["left_out"]["responses"] == {"key_mismatch": 5}
    assert "zeta: nothing is planned for responses, for all 10 requests" in second.notes[0]
    assert second.facts["items"]["embeddings"] > 0

    # The same twice more: it stays blocked, and what three days have shown to be idle goes.
    day = loop.serve(2, wrong=["zeta"])
    loop.check(second, day)
    third = loop.night(day)
    assert loop.prompts(third, "zeta") == {}
    assert loop.prompts(third, "acme").keys() == {*USUAL, LAUNCH, *FORMS, PINNED}
    day = loop.serve(3, wrong=["zeta"])
    loop.check(third, day)
    fourth = loop.night(day)
    assert fourth.facts["decision"] == "planned"
    assert loop.prompts(fourth, "zeta") == {}
    planned = loop.prompts(fourth, "acme")
    assert planned.keys() == {*USUAL, LAUNCH, PINNED}
    assert planned[PINNED].endswith("0.0 were expected and none came")
    assert planned[LAUNCH].endswith("were expected and none came")
    assert fourth.facts["left_out"]["responses"] == {"key_mismatch": 5, "never_hit": 2}
    diff = pipeline.plan_diff(loop.config, third.facts["plan_id"], fourth.facts["plan_id"])
    assert diff["layers"]["responses"]["why_dropped"] == {"never_hit": 2}

    # The gateway is mended: it asks for the right keys, under which the first night's still lie.
    day = loop.serve(4)
    assert loop.check(fourth, day) == {}
    fifth = loop.night(day)
    assert fifth.facts["feedback"]["blocked"] == []
    assert loop.prompts(fifth, "zeta").keys() == {*USUAL}
    loop.serve(5)
    assert set(loop.found) == {"responses"}


def test_a_mended_gateway_that_finds_nothing_lifts_the_block_too(loop: Loop) -> None:
    first = loop.night(loop.history())
    day = loop.serve(1, wrong=["zeta"])
    loop.check(first, day)
    second = loop.night(day)
    loop.flush()
    pipeline.apply(loop.config, second.facts["plan_id"])
    day = loop.serve(2)
    assert loop.check(second, day) == {"left_out": 10}
    third = loop.night(day)
    assert third.facts["feedback"]["blocked"] == []
    assert loop.prompts(third, "zeta").keys() == {*USUAL}
    loop.serve(3)
    assert set(loop.found) == {"responses"}


def test_a_gateway_that_keeps_what_it_asks_for_under_its_own_keys_is_seen_through(
    loop: Loop,
) -> None:
    """It finds again what it wrote, under a key that the plan never writes."""
    first = loop.night(loop.history())
    day = loop.serve(1, wrong=["zeta"], keeping=True)
    assert "responses" in loop.found[len(USUAL) * 2 :]
    assert loop.check(first, day)["key_dimension"] >= 5
    second = loop.night(day)
    assert loop.prompts(second, "zeta") == {}
    assert loop.prompts(second, "acme").keys() >= {*USUAL}
