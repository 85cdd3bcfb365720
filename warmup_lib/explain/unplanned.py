"""Why there was no item for a request: left out, planned otherwise, or never seen before."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace

from warmup_lib.causes import Cause
from warmup_lib.distil.templates import head_digest
from warmup_lib.distil.volatile import Head
from warmup_lib.explain.closeness import Closeness
from warmup_lib.explain.history import History, Once, Text
from warmup_lib.explain.leftout import COVERED, LeftOut, by_reason
from warmup_lib.explain.miss import L1, L2, L3, PREFIXES, Miss, Verdict
from warmup_lib.explain.otherwise import Otherwise
from warmup_lib.explain.places import digests
from warmup_lib.explain.standing import Standing
from warmup_lib.explain.variants import Variant, Variants, in_context
from warmup_lib.guard import compatible
from warmup_lib.keys import Keys
from warmup_lib.places import EMBEDDINGS, RESPONSES

Open = Sequence[tuple[Miss, str | None]]
"""Misses that nothing was planned for under their own digest, and why it was left out."""

_NEW = Verdict(Cause.UNSEEN, "history=nothing like it")
_ELSEWHERE = Verdict(Cause.UNSEEN, "history=its text, but in other contexts")
_OTHER_FACTS = "history=its like, with another number, name, unit or negation"


@dataclass
class Unplanned:
    """Explains requests for which nothing was planned under their own digest.

    Attributes:
        standing: The plan's items.
        left_out: What the plan left out.
        history: What was asked before.
        closeness: Judges near answers.
        otherwise: Finds what is planned but for one thing.
        keys: The key builder.
    """

    standing: Standing
    left_out: LeftOut
    history: History
    closeness: Closeness
    otherwise: Otherwise
    keys: Keys
    _variants: Variants = field(init=False)
    _templates: dict[Text, list[tuple[str, Once]]] = field(init=False, default_factory=dict)
    _kinds: dict[str, Callable[[Open], list[Verdict]]] = field(init=False)

    def __post_init__(self) -> None:
        self._variants = Variants(self.history)
        self._kinds = {
            "answers": self._answers,
            "texts": self._texts,
            "heads": self._heads,
            "segments": self._segments,
            "chunks": self._chunks,
        }

    def settle(self, misses: Sequence[Miss]) -> list[Verdict]:
        """Return one verdict a miss, in order."""
        wanted = [digests(miss, self.keys) for miss in misses]
        reasons = self.left_out.reasons(list(zip(misses, wanted, strict=True)))
        found = [None if r == COVERED else by_reason(r) for r in reasons]
        for name, judge in self._kinds.items():
            rest = [n for n, v in enumerate(found) if v is None and _kind(misses[n]) == name]
            verdicts = judge([(misses[n], reasons[n]) for n in rest]) if rest else []
            for n, verdict in zip(rest, verdicts, strict=True):
                found[n] = verdict
        return [v or Verdict(Cause.UNKNOWN, "nothing fits") for v in found]

    def _answers(self, rest: Open) -> list[Verdict]:
        """Judge answers: planned otherwise, near to a planned one, a variant, or new."""
        misses = [miss for miss, _ in rest]
        mistaken = self._mistaken(misses)
        close = self.closeness.judge(misses)
        asked = [(m.asked.tenant, m.asked.response_digest) for m in misses]
        before = self.history.answers(asked)
        found: list[Verdict | None] = []
        for (_, reason), wrong, near, place in zip(rest, mistaken, close, asked, strict=True):
            own = by_reason(reason)  # covered, and yet nothing near serves it
            known = _no_candidate(before[place]) if place in before else None
            found.append((wrong if reason is None else None) or near or own or known)
        return self._by_variants(misses, found)

    def _texts(self, rest: Open) -> list[Verdict]:
        """Judge texts that lack a vector: planned for another tenant, a variant, or new."""
        misses = [miss for miss, _ in rest]
        before = self.history.of_texts((m.asked.tenant, m.asked.text_digest) for m in misses)
        found: list[Verdict | None] = []
        for miss, wrong in zip(misses, self._mistaken(misses), strict=True):
            places = before.get((miss.asked.tenant, miss.asked.text_digest), [])
            known = _no_candidate(places[0][1]) if places else None
            found.append(wrong or known)
        return self._by_variants(misses, found)

    def _mistaken(self, misses: Sequence[Miss]) -> list[Verdict | None]:
        contexts = [(m.asked.tenant, m.asked.context_digest) for m in misses]
        before = self.history.contexts(contexts)
        return [
            None if context in before else self.otherwise.of(miss)
            for miss, context in zip(misses, contexts, strict=True)
        ]

    def _by_variants(
        self, misses: Sequence[Miss], found: Sequence[Verdict | None]
    ) -> list[Verdict]:
        """Fill in what the variants of the rest show; what has none was never seen."""
        rest = [m for m, v in zip(misses, found, strict=True) if v is None]
        known = self._variants.of({_text(m): m.asked.prompt for m in rest})
        alike = [_alike(miss, known[_text(miss)]) for miss in rest]
        self.left_out.of(
            [_place(m, some[0].once) for m, some in zip(rest, alike, strict=True) if some]
        )
        heads = self.history.heads((m.asked.tenant, m.asked.head_digest) for m in rest)
        told = iter(
            [
                self._by_variant(miss, some[0])
                if some
                else self._without_variant(miss, known[_text(miss)], heads)
                for miss, some in zip(rest, alike, strict=True)
            ]
        )
        return [v or next(told) for v in found]

    def _by_variant(self, miss: Miss, first: Variant) -> Verdict:
        told, place = f"variant={first.how}", _place(miss, first.once)
        if items := self.standing.planned(miss.layer, miss.tier, *place[1:]):
            if compatible(miss.asked.prompt, items[0].text or ""):
                return Verdict(Cause.BELOW_THRESHOLD, f"{told} planned", items[0].item_id)
            if miss.layer != RESPONSES:  # the guard refuses answers: a vector holds none
                return Verdict(Cause.UNSEEN, f"{_OTHER_FACTS} {told} planned")
            return Verdict(Cause.GUARD_REFUSED, f"{told} planned", items[0].item_id)
        reason = self.left_out.of([place]).get(place)
        if reason == COVERED:
            return Verdict(Cause.BELOW_THRESHOLD, f"{told} covered")
        return by_reason(reason, told) or _no_candidate(first.once, told)

    def _without_variant(
        self, miss: Miss, elsewhere: Sequence[Variant], heads: Container[Text]
    ) -> Verdict:
        """Return what a system prompt shows that is new each time; else it is new."""
        if not elsewhere:
            return _NEW
        used = {one.where.head for one in elsewhere}
        if (miss.asked.tenant, miss.asked.head_digest) not in heads:
            for how, once in self._alike_heads(miss):
                if once.digest in used:
                    why = once.unwarmable[:60] or "its system prompt is new each time"
                    return Verdict(Cause.LEFT_OUT, f"{why} head_variant={how}")
        return _ELSEWHERE

    def _heads(self, rest: Open) -> list[Verdict]:
        """Judge system prompts and prefixes."""
        asked = [(miss.asked.tenant, miss.asked.head_digest) for miss, _ in rest]
        before = self.history.heads(asked)
        found = []
        for (miss, _), place in zip(rest, asked, strict=True):
            if place in before:
                found.append(_no_candidate(before[place]))
            else:
                found.append(self.otherwise.of(miss) or self._new_head(miss))
        return found

    def _new_head(self, miss: Miss) -> Verdict:
        asked = miss.asked
        if not asked.system_prompt and not asked.tools:
            return Verdict(Cause.SUB_BLOCK, "head=none: requests share nothing")
        for how, once in self._alike_heads(miss):
            told = f"variant={how}"
            if items := self.standing.planned(miss.layer, miss.tier, asked.tenant, once.digest):
                return Verdict(Cause.LEFT_OUT, f"{told} planned, new each time", items[0].item_id)
            key = (miss.layer, asked.tenant, once.digest)
            verdict = by_reason(self.left_out.of([key]).get(key), told)
            if verdict is not None and verdict.cause is Cause.BELOW_BUDGET:
                # More room would have warmed the other head, which this request can't use.
                verdict = replace(verdict, cause=Cause.LEFT_OUT)
            return verdict or _no_candidate(once, told)
        return _NEW

    def _alike_heads(self, miss: Miss) -> list[tuple[str, Once]]:
        asked = miss.asked
        place = (asked.tenant, asked.model, asked.model_revision, asked.adapter)
        head = Head(place, asked.head_digest, asked.system_prompt or "", asked.tools or "")
        template = asked.tenant, head_digest(head)
        found = self._templates.get(template)
        if found is None:
            found = self.history.similar_heads(*template, asked.system_prompt or "")
            if any(how == "template" for how, _ in found):
                self._templates[template] = found
        return found

    def _segments(self, rest: Open) -> list[Verdict]:
        before = self.history.segments()
        return [
            Verdict(Cause.LEFT_OUT, "seen, and no candidate")
            if (miss.asked.tenant, miss.asked.user_segment) in before
            else _NEW
            for miss, _ in rest
        ]

    def _chunks(self, rest: Open) -> list[Verdict]:
        """Judge chunks, and lists of chunks, by whether anybody knew the chunks."""
        before = self.history.chunks()
        tenants = {tenant for tenant, _ in before}
        found = []
        for miss, _ in rest:
            asked = miss.asked
            known = any((asked.tenant, chunk) in before for chunk in asked.chunk_ids or ())
            seen = asked.tenant in tenants if miss.tier == L3 else known
            found.append(Verdict(Cause.LEFT_OUT, "no documents hold it") if seen else _NEW)
        return found


def _text(miss: Miss) -> Text:
    return miss.asked.tenant, miss.asked.text_digest


def _alike(miss: Miss, known: Sequence[Variant]) -> Sequence[Variant]:
    """Return the variants that the layer takes for the like: of answers those in its context."""
    return in_context(known, miss.asked.context_digest) if miss.layer == RESPONSES else known


def _place(miss: Miss, once: Once) -> tuple[str, str, str]:
    """Return where a variant of what was missed lies: layer, tenant and digest."""
    digest = once.digest if miss.layer == RESPONSES else once.text_digest
    return miss.layer, miss.asked.tenant, digest


def _kind(miss: Miss) -> str:
    if miss.layer == PREFIXES or miss.tier == L1:
        return "heads"
    if miss.tier == L2:
        return "segments"
    return {RESPONSES: "answers", EMBEDDINGS: "texts"}.get(miss.layer, "chunks")


def _no_candidate(once: Once, told: str = "") -> Verdict:
    """Return the verdict on something that was seen, and neither planned nor left out."""
    why = f"unwarmable={once.unwarmable[:60]}" if once.unwarmable else "no candidate of this plan"
    return Verdict(
        Cause.LEFT_OUT, " ".join(filter(None, [f"seen={once.last_day[:10]} {why}", told]))
    )
