"""A second way to tell why a request missed: slow, plain, from raw tables and looks at the Redis.

It shares no code with `warmup_lib.explain`: it reads whole tables into lists, goes through them one
by one, and asks the Redis itself. Keys, guard and encoder are the contracts that both go by.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import redis

from warmup_lib.distil.near import jaccard, shingles
from warmup_lib.embed.opening import open_encoder
from warmup_lib.guard import signature
from warmup_lib.keys import Keys, embedding_text
from warmup_lib.lake import Lake

Row = Mapping[str, Any]


_ALIKE = 0.85


@dataclass
class Second:
    """The second way.

    Args:
        lake: The lake.
        plan_id: The plan.
        day: The day of the traffic.
        keys: The key builder.
        store: A client of the Redis.
        config: The settings.
    """

    lake: Lake
    plan_id: str
    day: str
    keys: Keys
    store: Any
    config: Any

    def __post_init__(self) -> None:
        mine = {"plan_id": self.plan_id}
        self.plan = self.lake.read("plan", mine).to_pylist()
        self.left_out = self.lake.read("left_out", mine).to_pylist()
        self.receipts = self.lake.read("receipts", mine).to_pylist()
        self.requests = {
            (r["tenant"], r["request_id"]): r
            for r in self.lake.read("requests", {"day": self.day}).to_pylist()
        }
        before = [day for day in self.lake.days("prompts") if day < self.day]
        self.prompts = [
            r for d in before for r in self.lake.read("prompts", {"day": d}).to_pylist()
        ]
        self.heads = self._all("heads", before)
        self.encoder = open_encoder(self.config)
        self.served = {
            row["adapter"]: f"{row['adapter']}-{row['key_digest'][:12]}"
            for row in self.plan
            if row["layer"] == "adapters"
        }

    def causes(self, miss: Row) -> set[str]:
        """Return the causes that fit a row of `causes`; one, but where variants disagree."""
        request = self.requests[miss["tenant"], miss["request_id"]]
        if request["bypass"]:
            header = re.search("no-cache|no-store|max-age=0", request["cache_control"] or "")
            return {"bypass_header" if header else "bypass_parameter"}
        if miss["layer"] == "prefixes" or miss["tier"] == "L1":
            return self._head(miss, request)
        if miss["layer"] == "embeddings" and miss["tier"] is None:
            return self._text(request)
        if miss["layer"] == "responses":
            return self._answer(request)
        raise AssertionError(f"no second way for {miss['layer']} {miss['tier']}")

    def _all(self, table: str, days: Iterable[str]) -> list[Row]:
        return [row for day in days for row in self.lake.read(table, {"day": day}).to_pylist()]

    # -- one layer each --------------------------------------------------------------------------

    def _text(self, request: Row) -> set[str]:
        tenant, digest = request["tenant"], request["text_digest"]
        key = self.keys.key(f"embeddings:{self.encoder.fingerprint}", tenant, digest)
        assert not self.store.exists(key), "it is there"
        if known := self._of_plan("embeddings", None, tenant, digest):
            return {known}
        return self._variants(request, "embeddings", "text_digest", None) or {"unseen"}

    def _answer(self, request: Row) -> set[str]:
        tenant, digest = request["tenant"], request["response_digest"]
        key = self.keys.key(
            f"responses:{self.encoder.fingerprint}",
            tenant,
            digest,
            model=request["model"],
            model_revision=request["model_revision"],
            adapter=self.served.get(request["adapter"], request["adapter"]),
        )
        assert self.plan_id.encode() not in (self.store.hget(key, "metadata") or b""), "it is there"
        known = self._of_plan("responses", None, tenant, digest)
        if known and known != "covered":
            return {known}
        if near := self._near(request):
            return {near}
        if known == "covered" or any(
            p["tenant"] == tenant and p["response_digest"] == digest for p in self.prompts
        ):
            return {"left_out"}
        context = request["context_digest"]
        found = self._variants(request, "responses", "response_digest", context)
        return found or self._same_words_under_a_clock(request) or {"unseen"}

    def _head(self, miss: Row, request: Row) -> set[str]:
        tenant, digest = request["tenant"], request["head_digest"]
        if known := self._of_plan(miss["layer"], miss["tier"], tenant, digest):
            return {known}
        mine = _without_digits(request["system_prompt"] or "")
        for head in self.heads:
            if head["tenant"] == tenant and _without_digits(head["system_prompt"] or "") == mine:
                return {"left_out"}
        return {"unseen"}

    # -- what the plan knows ---------------------------------------------------------------------

    def _of_plan(self, layer: str, tier: str | None, tenant: str, digest: str) -> str | None:
        for item in self.plan:
            place = (item["layer"], item["tier"], item["tenant"], item["key_digest"])
            if place == (layer, tier, tenant, digest):
                return self._fate(item)
        for row in self.left_out:
            if (row["layer"], row["tenant"], row["digest"]) == (layer, tenant, digest):
                return _word(row["reason"])
        return None

    def _fate(self, item: Row) -> str:
        ours = [r for r in self.receipts if r["item_id"] == item["item_id"]]
        if not ours:
            return "not_applied"
        last = max(ours, key=lambda r: r["at"])
        if last["status"] in ("failed", "skipped"):
            return "apply_failed" if last["status"] == "failed" else "not_applied"
        return "evicted"  # the test's Redis is neither old, nor restarted, nor flushed

    # -- what is near ----------------------------------------------------------------------------

    def _near(self, request: Row) -> str | None:
        """Search the tenant's index for its context alone, whatever the guard says."""
        tenant = request["tenant"]
        [vector] = self.encoder.encode([embedding_text(request["prompt"])])
        served = self.served.get(request["adapter"], request["adapter"])
        context = request["context_digest"]
        if served != request["adapter"]:
            context = self.keys.under(context, served)
        index = self.keys.index("responses", tenant, self.encoder.fingerprint)
        query = f"(@context:{{{context}}})=>[KNN 1000 @prompt_vector $v AS far]"
        raw = np.asarray(vector, dtype="<f4").tobytes()
        reply = self.store.execute_command(
            *("FT.SEARCH", index, query, "PARAMS", "2", "v", raw, "SORTBY", "far"),
            *("RETURN", "3", "far", "prompt", "metadata", "LIMIT", "0", "1000", "DIALECT", "2"),
        )
        own, best = signature(request["prompt"]), {True: -1.0, False: -1.0}
        for pairs in reply[2::2]:
            fields = dict(zip(pairs[::2], pairs[1::2], strict=True))
            if self.plan_id.encode() not in fields[b"metadata"]:
                continue
            passes = signature(fields[b"prompt"].decode()) == own
            best[passes] = max(best[passes], 1.0 - float(fields[b"far"]))
        least = self.config.encoder.threshold - 1e-6
        assert best[True] < least, "a similar answer is there"
        if best[False] >= least:
            return "guard_refused"
        return "below_threshold" if best[True] >= least - 0.1 else None

    # -- what was asked before -------------------------------------------------------------------

    def _variants(self, request: Row, layer: str, digest: str, context: str | None) -> set[str]:
        """Return the causes of what is almost the same, of the closest kind that there is."""
        tenant, text = request["tenant"], request["prompt"]
        rows = [p for p in self.prompts if p["tenant"] == tenant and p["text"] is not None]
        rows = [p for p in rows if context is None or p["context_digest"] == context]
        mine = embedding_text(text)
        kinds: list[Iterable[Row]] = [
            [p for p in rows if p["text_digest"] == request["text_digest"]],
            [p for p in rows if _letters(p["text"]) == _letters(text) != ""],
            [p for p in rows if p["unwarmable"] != "redacted" and _alike(p["text"], mine)],
        ]
        for kind in kinds:
            if found := {self._of_variant(layer, tenant, p, digest, text) for p in kind}:
                return found
        return set()

    def _of_variant(self, layer: str, tenant: str, row: Row, digest: str, text: str) -> str:
        for item in self.plan:
            place = (item["layer"], item["tier"], item["tenant"], item["key_digest"])
            if place == (layer, None, tenant, row[digest]):
                same = signature(item["text"]) == signature(text)
                other = "guard_refused" if layer == "responses" else "unseen"
                return "below_threshold" if same else other
        known = self._of_plan(layer, None, tenant, row[digest])
        return {None: "left_out", "covered": "below_threshold"}.get(known, known or "")

    def _same_words_under_a_clock(self, request: Row) -> set[str]:
        """Say whether the text was asked under a system prompt that differs in digits alone."""
        mine = _without_digits(request["system_prompt"] or "")
        if any(
            (h["tenant"], h["head_digest"]) == (request["tenant"], request["head_digest"])
            for h in self.heads
        ):
            return set()
        heads = {
            h["head_digest"]
            for h in self.heads
            if h["tenant"] == request["tenant"]
            and _without_digits(h["system_prompt"] or "") == mine
        }
        text, folded = request["prompt"], embedding_text(request["prompt"])
        for row in self.prompts:
            if row["tenant"] == request["tenant"] and row["head_digest"] in heads:
                said = row["text"] or ""
                same = row["text_digest"] == request["text_digest"]
                if same or _letters(said) == _letters(text) != "" or _alike(said, folded):
                    return {"left_out"}
        return set()


def _word(reason: str) -> str:
    word = reason.split(":")[0]
    if word == "covered":
        return word
    return {"below_budget": "below_budget", "short_head": "sub_block"}.get(word, "left_out")


def _letters(text: str) -> str:
    """Return the letters of a text, and their marks, in lower case."""
    lower = unicodedata.normalize("NFC", text).lower()
    return "".join(c for c in lower if unicodedata.category(c)[0] in "LM")


def _alike(text: str, folded: str) -> bool:
    """Say whether two texts are near duplicates, compared directly."""
    other = embedding_text(text)
    if signature(other) != signature(folded):
        return False
    return jaccard(shingles(other), shingles(folded)) >= _ALIKE


def _without_digits(text: str) -> str:
    return re.sub(r"\d+", "", text)


def client(url: str) -> Any:
    """Return a plain client."""
    return redis.Redis.from_url(url, protocol=2)
