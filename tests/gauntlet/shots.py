"""What is sent through the gauntlet, and why each of it must miss where it does.

The labels stay here and in a file of their own: the detector never reads them.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from tests.gauntlet.corpus import REVISION, SHORT_HEAD, TENANTS, Ask, head
from tests.gauntlet.gateway import FINE, Wrong
from warmup_lib.causes import Cause

EACH = 12
"""Injections of each cause."""

EVERY = "*"
"""In a label: every layer that is not named."""

T = TypeVar("T")

_LOOKED = ("responses", "embeddings")


@dataclass(frozen=True)
class Shot:
    """One request with at most one fault.

    Attributes:
        ask: The request.
        label: Layer -> its true cause; empty: nothing may miss.
        wrong: What is wrong with the gateway.
        headers: Its headers.
    """

    ask: Ask
    label: Mapping[str, Cause] = field(default_factory=dict)
    wrong: Wrong = FINE
    headers: Mapping[str, str] | None = None


def of(cause: Cause, asks: Iterable[Ask], wrong: Wrong = FINE) -> list[Shot]:
    """Return shots in which every layer that misses does so for one cause."""
    return [Shot(ask, {EVERY: cause}, wrong) for ask in asks]


class Armoury:
    """Draws shots.

    Args:
        rng: The draw.
        new: Questions that nobody asked before; each is used once.
    """

    def __init__(self, rng: random.Random, new: Sequence[Ask]) -> None:
        self._rng = rng
        self._new = list(new)

    def some(self, asks: Sequence[Ask], count: int = EACH) -> list[Ask]:
        """Draw questions."""
        return self._rng.sample(list(asks), min(count, len(asks)))

    def new(self, count: int = EACH) -> list[Ask]:
        """Take new questions."""
        taken, self._new = self._new[:count], self._new[count:]
        assert len(taken) == count, "the corpus has too few new questions"
        return taken

    # -- healthy, some of it odd -----------------------------------------------------------------

    def healthy(self, resident: Sequence[Ask], count: int) -> list[Shot]:
        """Return requests whose answers are warm, some spelt in another way."""
        plain = [Shot(ask) for ask in self.some(resident, count)]
        spelt = [Shot(_respelt(a, n)) for n, a in enumerate(self.some(resident, count // 4))]
        return plain + spelt

    def callers(self, resident: Sequence[Ask], count: int = EACH) -> list[Shot]:
        """Return the requests of callers who mean their `no-cache`: one, and one new each time."""
        asks = self.some(resident, count)
        named = [{"user_agent": "evaluation/1.4"} for _ in asks]
        drawn = [{"user": f"evaluation-{n:05d}"} for n in range(len(asks))]
        return [
            Shot(
                replace(ask, fields={"extra": extra}),
                dict.fromkeys(_LOOKED, Cause.BYPASS_HEADER),
                headers={"cache-control": "no-cache"},
            )
            for ask, extra in zip([*asks, *asks], [*named, *drawn], strict=True)
        ]

    # -- keys ------------------------------------------------------------------------------------

    def keys(self, resident: Sequence[Ask]) -> list[Shot]:
        """Return requests for what is warm, looked up under a wrong key."""
        tenants = [ask for ask in resident if ask.tenant in TENANTS]
        shots = []
        for ask in self.some(tenants):
            others = [name for name in TENANTS if name != ask.tenant]
            shots += of(Cause.KEY_TENANT, [ask], Wrong(tenant=self._rng.choice(others)))
        adapted = [ask for ask in resident if ask.adapter]
        for n, ask in enumerate(self.some(adapted)):
            # Other weights, or the name without any.
            wrong = Wrong(adapter="-0123456789ab" if n % 2 else "")
            shots += of(Cause.KEY_ADAPTER, [ask], wrong)
        for n, ask in enumerate(self.some(resident)):
            wrong = Wrong(revision=f"{REVISION}-rc1" if n % 2 else "")
            shots += of(Cause.KEY_MODEL_REVISION, [ask], wrong)
        shots += of(Cause.KEY_TEMPLATE, self.some(resident), Wrong(template="b" * 16))
        shots += of(Cause.KEY_ENCODER, self.some(resident), Wrong(encoder="c" * 16))
        return shots + self._dimensions(resident) + self._texts(resident)

    def _dimensions(self, resident: Sequence[Ask]) -> list[Shot]:
        shots = []
        for n, ask in enumerate(self.some(resident)):
            device = {"device": self._rng.choice(["mobile", "desktop", "tablet"])}
            wrong = Wrong(dimension="device", noted=n % 2 == 0)
            shots += of(Cause.KEY_DIMENSION, [replace(ask, fields={"extra": device})], wrong)
        return shots

    def _texts(self, resident: Sequence[Ask]) -> list[Shot]:
        shots = []
        for n, ask in enumerate(self.some([ask for ask in resident if len(ask.prompt) > 30])):
            length = self._rng.randint(12, len(ask.prompt) * 2 // 3)
            wrong = Wrong(first=length) if n % 2 else Wrong(last=length)
            shots += of(Cause.KEY_TOKENISATION, [ask], wrong)
        for n, ask in enumerate(self.some(resident)):
            shots += of(Cause.KEY_NORMALISATION, [_respelt(ask, n)], Wrong(raw=True))
        return shots

    # -- ways round ------------------------------------------------------------------------------

    def bypasses(self, resident: Sequence[Ask]) -> list[Shot]:
        """Return requests for what is warm that go round the caches."""
        by_header = dict.fromkeys(_LOOKED, Cause.BYPASS_HEADER)
        by_parameter = dict.fromkeys(_LOOKED, Cause.BYPASS_PARAMETER)
        unlooked = dict.fromkeys(_LOOKED, Cause.BYPASS_MIDDLEWARE)
        said = [{"cache-control": word} for word in ("no-cache", "no-store", "max-age=0")]
        flags = [{"skip_cache": True}, {"disable_cache": 1}, {"cache_enabled": "false"}]
        return [
            *(
                Shot(ask, by_header, headers=said[n % 3])
                for n, ask in enumerate(self.some(resident))
            ),
            *(
                Shot(replace(ask, fields={"params": flags[n % 3]}), by_parameter)
                for n, ask in enumerate(self.some(resident))
            ),
            *(Shot(ask, unlooked, Wrong(blind=True)) for ask in self.some(resident)),
        ]

    # -- hosts -----------------------------------------------------------------------------------

    def on_host(self, heads: Iterable[Ask], host: str, cause: Cause | None) -> list[Shot]:
        """Return new questions with these system prompts, sent to a host.

        Args:
            heads: Requests with the system prompts.
            host: The host.
            cause: Why the host has not the system prompt; None: it has.
        """
        shots = []
        for ask in heads:
            [new] = self.new(1)
            label = dict.fromkeys(_LOOKED, Cause.UNSEEN)
            label |= {"prefixes": cause} if cause else {}
            asked = replace(ask, prompt=new.prompt, answer=None, adapter=None)
            shots.append(Shot(asked, label, Wrong(host=host)))
        return shots

    def brief(self, host: str) -> list[Shot]:
        """Return new questions with a system prompt that fills no cache block."""
        heads = [Ask(TENANTS[n % 3], "", SHORT_HEAD) for n in range(EACH)]
        return self.on_host(heads, host, Cause.SUB_BLOCK)

    def shuffled(self, things: Iterable[T]) -> list[T]:
        """Return things in a drawn order."""
        held = list(things)
        self._rng.shuffle(held)
        return held


def _respelt(ask: Ask, number: int) -> Ask:
    """Return a question in another spelling that means the same."""
    ways = (
        lambda text: text.replace(" ", "  ", 2),
        lambda text: f"  {text}\r\n",
        lambda text: text.replace(" ", "\N{NO-BREAK SPACE}", 1),
        lambda text: (
            unicodedata.normalize("NFD", text).replace("?", "\N{FULLWIDTH QUESTION MARK}") + " "
        ),
    )
    return replace(ask, prompt=ways[number % len(ways)](ask.prompt))


def heads_of(tenants: Iterable[str], count: int) -> list[Ask]:
    """Return a request for each system prompt of these tenants."""
    return [Ask(tenant, "", head(tenant, n)) for tenant in tenants for n in range(count)]


def write_labels(file: Path, labels: Mapping[str, Mapping[str, Cause]]) -> None:
    """Write the labels by request."""
    held = {ident: {k: v.value for k, v in one.items()} for ident, one in labels.items()}
    file.write_text(json.dumps(held, indent=1))
