"""What the gauntlet's tenants ask: questions that are far apart, near ones, and ones of the guard.

Texts are those of the sample log's grammar; which of them plays which part is drawn by a seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np

from samples.shipped import Shipped
from samples.texts import tenant as sample_tenant
from warmup_lib.embed.universal import UniversalSentenceEncoder
from warmup_lib.guard import tag
from warmup_lib.keys import embedding_text
from warmup_lib.stack.servers import MODEL_NAME

TENANTS = ("acme-bank", "nordwind-travel", "hearth-home")
RARE = tuple(f"branch-{n}" for n in range(6))
ADAPTERS = ("acme-bank-cards-lora", "acme-bank-loans-lora", "nordwind-flights-lora")
REVISION = "r7"
HEADS = 9
"""System prompts of each tenant."""

FAR, NEAR, THRESHOLD, SAME = 0.80, 0.84, 0.92, 0.935
"""Cosines: different questions are below the first, paraphrases between the second and the third,
what only the guard keeps apart is above the last."""

_WARM, _COLD, _MUTE, _BRIEF, _NEW = 52, 7, 6, 4, 70


@dataclass(frozen=True)
class Ask:
    """One request of an application; `near` is the planned question that it is near to."""

    tenant: str
    prompt: str
    system_prompt: str
    adapter: str | None = None
    answer: str | None = None
    near: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)

    def row(self, request_id: str, at: datetime) -> dict[str, Any]:
        """Return it as a canonical log row."""
        held = {
            "request_id": request_id,
            "ts": at.isoformat(),
            "tenant": self.tenant,
            "model": MODEL_NAME,
            "model_revision": REVISION,
            "adapter": self.adapter,
            "system_prompt": self.system_prompt,
            "prompt": self.prompt,
            "status": 200,
            **self.fields,
        }
        return {k: v for k, v in held.items() if v is not None}


@dataclass
class Corpus:
    """All questions by their part.

    Attributes:
        warm: Asked often, answered in the log: planned.
        cold: Asked seldom: they find no room.
        mute: Asked often, never answered in the log: left out.
        new: Asked by nobody before.
        odd: Planned too, and unusual: long prompts, rare tenants.
        brief: Planned too, with a system prompt that is shorter than a cache block.
        paraphrases: Of planned questions, not near enough.
        variants: Of planned questions, nearer than that, with another meaning.
    """

    warm: list[Ask] = field(default_factory=list)
    cold: list[Ask] = field(default_factory=list)
    mute: list[Ask] = field(default_factory=list)
    new: list[Ask] = field(default_factory=list)
    odd: list[Ask] = field(default_factory=list)
    brief: list[Ask] = field(default_factory=list)
    paraphrases: list[Ask] = field(default_factory=list)
    variants: list[Ask] = field(default_factory=list)

    @property
    def planned(self) -> list[Ask]:
        """All that the plan holds an answer of."""
        return [*self.warm, *self.odd, *self.brief]

    def history(self, last: date) -> Iterator[dict[str, Any]]:
        """Yield the log of two days up to and with `last`."""
        number = 0
        for back in (1, 0):
            begin = datetime.combine(last - timedelta(days=back), time(8), UTC)
            for asks, times in _times(self):
                for ask in asks * times if not (back and times == 1) else ():
                    number += 1
                    row = ask.row(f"h{number}", begin + timedelta(seconds=20 * number % 36_000))
                    yield row | ({"response": ask.answer} if ask.answer else {})


def _times(corpus: Corpus) -> list[tuple[list[Ask], int]]:
    often = [corpus.warm, corpus.odd, corpus.brief, corpus.mute]
    return [*((asks, 4) for asks in often), (corpus.cold, 1)]


def head(tenant: str, number: int) -> str:
    """Return a system prompt of about a hundred tokens."""
    desk = ("cards", "loans", "travel", "claims", "accounts", "orders", "repairs", "plants", "food")
    name = desk[number % len(desk)]
    return (
        f"You are assistant number {number} at the {name} desk of {tenant}. Answer in the language "
        f"of the customer, in at most four sentences, and name the menu of the app where it is "
        f"of use for {name}. Never guess an amount, a date or a name: where the question does not "
        f"say it, ask for it. Do not give legal or medical advice. If the customer is angry, say "
        f"first that you understand. End with a question that helps desk {number} to go on."
    )


SHORT_HEAD = "Answer briefly."


def compose(seed: int) -> Corpus:
    """Return a corpus."""
    rng = np.random.default_rng(seed)
    encoder = UniversalSentenceEncoder()
    corpus = Corpus()
    for name in TENANTS:
        _add(corpus, name, rng, encoder)
    _odd(corpus)
    return corpus


def _add(
    corpus: Corpus, name: str, rng: np.random.Generator, encoder: UniversalSentenceEncoder
) -> None:
    pool = [p.text for p in Shipped().pool(sample_tenant(name), 900, rng) if p.locale == "en"]
    vectors = np.asarray(encoder.encode([embedding_text(text) for text in pool]))
    near = vectors @ vectors.T
    tags = [tag(text) for text in pool]
    far: list[int] = []
    for n in rng.permutation(len(pool)).tolist():
        if not far or near[n, far].max() < FAR:
            far.append(n)

    def alone(n: int, base: int, low: float, high: float, same: bool) -> bool:
        others = [other for other in far if other != base]
        fits = low < near[n, base] < high and (tags[n] == tags[base]) is same
        return fits and n != base and float(near[n, others].max()) < NEAR

    def beside(base: int, low: float, high: float, same: bool) -> int | None:
        return next((n for n in range(len(pool)) if alone(n, base, low, high, same)), None)

    paraphrased = [
        (b, n) for b in far if (n := beside(b, NEAR, THRESHOLD - 0.01, True)) is not None
    ]
    varied = [(b, n) for b in far if (n := beside(b, SAME, 1.0, False)) is not None]
    bases = list(dict.fromkeys([b for b, _ in paraphrased[:10]] + [b for b, _ in varied[:8]]))
    order = bases + [n for n in far if n not in bases]
    at = {n: head(name, place % HEADS) for place, n in enumerate(order)}

    def asks(numbers: list[int]) -> list[Ask]:
        return [
            Ask(name, pool[n], at[n], answer=f"About {pool[n][:40]}: see the app.") for n in numbers
        ]

    ends = np.cumsum([_WARM, _COLD, _MUTE, _BRIEF, _NEW]).tolist()
    warm, cold, mute, brief, new = (order[a:b] for a, b in zip([0, *ends], ends, strict=False))
    corpus.warm += [
        replace(ask, adapter=ADAPTERS[n % 3]) if n >= len(bases) and n % 4 == 0 else ask
        for n, ask in enumerate(asks(warm))
    ]
    corpus.cold += asks(cold)
    corpus.mute += [replace(ask, answer=None) for ask in asks(mute)]
    corpus.brief += [replace(ask, system_prompt=SHORT_HEAD) for ask in asks(brief)]
    corpus.new += asks(new)
    held = {ask.prompt: ask for ask in corpus.warm if ask.tenant == name}

    def near_to(pairs: list[tuple[int, int]]) -> list[Ask]:
        return [
            replace(held[pool[b]], prompt=pool[n], answer=None, near=pool[b])
            for b, n in pairs
            if pool[b] in held
        ]

    corpus.paraphrases += near_to(paraphrased)
    corpus.variants += near_to(varied)


def _odd(corpus: Corpus) -> None:
    """Add long prompts of a tenant, and tenants that ask next to nothing."""
    for n in range(6):
        fill = " ".join(
            f"On page {page} it says that clause {page * 7 + n} holds." for page in range(60)
        )
        text = f"Which of these clauses matter to me as customer type {n}? {fill}"
        corpus.odd.append(Ask(TENANTS[0], text, head(TENANTS[0], n), answer=f"Clause {n}."))
    for n, tenant in enumerate(RARE):
        text = f"When does the office at place {n} open?"
        corpus.odd.append(Ask(tenant, text, head(tenant, 0), answer="At nine."))
