"""Who asks: sessions, users with their segments and A/B arms, and the turns that follow."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from samples import parameters as p
from samples.personal import KINDS
from samples.pool import pick, weighted
from samples.texts import table
from samples.writing import revealing, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from samples.demand import Opening
    from samples.pool import Prompt
    from samples.texts import Tenant

DAY_MS = 86_400_000
USERS = 12_000
"""Users of all tenants together at scale 1 (composed)."""

SEGMENT_BOOST = 4.0
"""How much more a segment asks the intents that are named as its own (composed)."""

_KIND_SHARES = {
    "codeforge": (0.15, 0.05, 0.0, 0.0, 0.8),
    "acme-bank": (0.25, 0.2, 0.35, 0.2, 0.0),
}
_OTHER_KINDS = (0.5, 0.4, 0.1, 0.0, 0.0)


@dataclass(frozen=True)
class Turn:
    """One request as a person makes it, before anything serves it.

    Attributes:
        at_ms: milliseconds since the log's start.
        history: earlier turns of the session, question and answer.
        personal: kind of personal-looking data in the text or the history, if any.
    """

    at_ms: int
    tenant: Tenant
    prompt: Prompt
    text: str
    answer: str
    history: tuple[tuple[str, str], ...]
    session: str
    user: str
    segment: str
    arm: str | None
    personal: str | None

    @property
    def day(self) -> int:
        """Day of the log, from 1."""
        return self.at_ms // DAY_MS + 1

    @property
    def area(self) -> str:
        """Part of the application it was asked in."""
        return self.tenant.intents[self.prompt.intent].area


def revision(tenant: Tenant, day: int) -> str:
    """Return the model revision that serves the tenant on that day."""
    released = tenant.revision_release and day >= p.REVISION_DAY
    return "r2" if released else tenant.model_revision


def turns(
    tenant: Tenant,
    pool: list[Prompt],
    openings: list[Opening],
    users: float,
    rng: np.random.Generator,
) -> Iterator[Turn]:
    """Yield the turns of a tenant's sessions; the turns of one session are in order.

    Args:
        tenant: the tenant.
        pool: its prompts.
        openings: when each session begins, and with which prompt.
        users: how many users the tenant has.
        rng: source of chance.
    """
    for number, opening in enumerate(openings):
        first = _first(tenant, pool[opening.prompt], opening, f"{number:x}", users, rng)
        yield first
        yield from _following(first, rng)


def _first(
    tenant: Tenant,
    prompt: Prompt,
    opening: Opening,
    number: str,
    users: float,
    rng: np.random.Generator,
) -> Turn:
    own = tenant.intents[prompt.intent].segment
    names = list(tenant.segments)
    shares = [tenant.segments[n] * (SEGMENT_BOOST if n == own else 1) for n in names]
    segment = names[weighted(shares, rng)]
    count = users * tenant.locales.get(prompt.locale, 0.2) * tenant.segments[segment]
    user = f"u-{tenant.name[:2]}-{prompt.locale}-{segment[0]}{int(count * rng.random() ** 2):x}"
    day = opening.at_ms // DAY_MS + 1
    arm = _arm(tenant, user, day)
    text, personal = written(prompt, rng), None
    if not prompt.button and rng.random() < p.PERSONAL / (1 - p.PRESSED):
        # more than the share, because suggested questions carry none
        personal = KINDS[weighted(_KIND_SHARES.get(tenant.name, _OTHER_KINDS), rng)]
        text = revealing(text, prompt.locale, personal, rng)
    return Turn(
        at_ms=opening.at_ms,
        tenant=tenant,
        prompt=prompt,
        text=text,
        answer=_answer(tenant, prompt, prompt.answer, arm, day),
        history=(),
        session=f"s-{tenant.name[:2]}-{number}",
        user=user,
        segment=segment,
        arm=arm,
        personal=personal,
    )


def _following(turn: Turn, rng: np.random.Generator) -> Iterator[Turn]:
    left = list(turn.prompt.follow)
    while left and rng.random() < p.FOLLOW_UP:
        question, answer = left.pop(0 if rng.random() < 0.65 else -1)
        gap = math.exp(math.log(45_000) + 0.7 * rng.standard_normal())
        later = replace(turn, at_ms=turn.at_ms + int(gap))
        later = replace(
            later,
            text=question,
            answer=_answer(turn.tenant, turn.prompt, answer, turn.arm, later.day),
            history=(*turn.history, (turn.text, turn.answer)),
        )
        yield later
        turn = later


def _arm(tenant: Tenant, user: str, day: int) -> str | None:
    test = tenant.experiment
    if test is None or not test.days[0] <= day <= test.days[1]:
        return None
    return list(test.arms)[zlib.crc32(user.encode()) % len(test.arms)]


def _answer(tenant: Tenant, prompt: Prompt, answer: str, arm: str | None, day: int) -> str:
    """Return the answer of that day's model and head: equal requests get equal answers."""
    style = revision(tenant, day) + tenant.arm_text(arm, day)
    closings = table("common")["closings"][prompt.locale]
    plain = style == tenant.model_revision
    closing = "" if plain else closings[1 + zlib.crc32(style.encode()) % (len(closings) - 1)]
    return f"{answer} {closing}".strip()


def pick_region(locale: str, user: str, rng: np.random.Generator) -> tuple[str, str]:
    """Return the user's region, which stays, and the device of this session."""
    regions: list[str] = table("common")["regions"][locale]
    region = regions[zlib.crc32(user.encode()) % len(regions)]
    return region, pick(table("common")["devices"], rng)
