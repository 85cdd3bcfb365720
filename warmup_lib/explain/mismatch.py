"""Whether a gateway asked for the key of the contract, and if not, what it keyed instead."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

from warmup_lib.causes import Cause
from warmup_lib.evidence import Looked
from warmup_lib.explain.guesses import Guess, made, of_dimensions, of_requests, of_text
from warmup_lib.explain.known import Known
from warmup_lib.explain.miss import Miss, Verdict
from warmup_lib.explain.parts import by_part, nearest
from warmup_lib.explain.places import own_keys
from warmup_lib.explain.rewording import FORMS, Cut
from warmup_lib.keys import FALLBACK_TENANTS, Parts, canonical_text, take_apart
from warmup_lib.places import RESPONSES, SYSTEM_PROMPTS, Places

_PATIENCE = 5_000_000_000
"""Guesses for a tenant's keys in a layer end when those in vain have taken so many characters: a
gateway that makes its keys in a way of its own does so for every request."""

_A_GUESS = 1_000
"""What a guess takes besides the characters of the request."""

_LIKELY = 8


class Mismatch:
    """Compares asked keys with those of the contract.

    Args:
        places: Where entries lie.
        known: What the history knows.
    """

    def __init__(self, places: Places, known: Known) -> None:
        self._places = places
        self._known = known
        self._scopes = {
            places.keys.scope(name): "a common fallback" for name in sorted(FALLBACK_TENANTS)
        }
        self._scopes |= {places.keys.scope(name): "another tenant" for name in known.tenants}
        self._told: dict[tuple[str, str], Verdict | None] = {}
        self._likely: list[Cut] = []
        self._vain: Counter[tuple[str, str]] = Counter()

    def settle(self, misses: Sequence[Miss]) -> dict[int, Verdict]:
        """Return the verdicts on those misses, by position, that asked for a wrong key."""
        found: dict[int, Verdict] = {}
        strange: dict[int, Looked] = {}
        for n, miss in enumerate(misses):
            look = self._wrong(miss)
            if look is None:
                continue
            verdict = self._verdict(miss, look)
            if verdict is None:
                strange[n] = look
            else:
                found[n] = verdict
        return found | self._together(misses, strange)

    def _wrong(self, miss: Miss) -> Looked | None:
        """Return the first look for a key that is not the contract's; None: all are right."""
        own = own_keys(miss, self._places)
        return next((look for look in miss.looks if own and look.key not in own), None)

    def _verdict(self, miss: Miss, look: Looked) -> Verdict | None:
        place = (self._own(miss)[0], look.key)
        if place not in self._told:
            self._told[place] = self._judge(miss, look)
        return self._told[place]

    def _own(self, miss: Miss) -> Sequence[str]:
        return own_keys(miss, self._places)

    def _judge(self, miss: Miss, look: Looked) -> Verdict | None:
        own = [parts for key in self._own(miss) if (parts := take_apart(key)) is not None]
        asked = take_apart(look.key)
        if asked is not None:
            right = nearest(asked, own)
            if found := by_part(asked, right, self._scopes):
                return Verdict(*found)
        if found := _noted(miss, look):
            return Verdict(*found)
        if asked is not None and (found := self._by_rest(miss, asked, own)):
            return Verdict(*found)
        return self._guessed(miss, look.key, asked)

    def _by_rest(self, miss: Miss, asked: Parts, own: Sequence[Parts]) -> tuple[Cause, str] | None:
        """Judge a place that no text is a part of, and what stands behind the digest."""
        right = nearest(asked, own)
        if asked.rest and asked.digest == right.digest:
            return Cause.KEY_DIMENSION, "the key goes on after its digest"
        if asked.place == right.place or not asked.place:
            return None
        if miss.word not in _NAME_A_MODEL:
            return Cause.KEY_DIMENSION, "the key names a model, which its entry does not depend on"
        if asked.digest == right.digest:
            return Cause.KEY_ADAPTER, "other weights of the adapter, or its name in the log"
        return None

    def _guessed(self, miss: Miss, key: str, asked: Parts | None) -> Verdict | None:
        wanted = {key, key if asked is None else f"{asked.digest}{asked.rest}"}
        tried = 0
        for guess in self._guesses(miss):
            if guess.digest in wanted:
                self._remember(guess.cut)
                return Verdict(guess.cause, guess.told)
            tried += 1
        self._vain[miss.asked.tenant, miss.word] += tried * (_A_GUESS + _size(miss))
        return self._by_place(miss, asked)

    def _guesses(self, miss: Miss) -> Iterator[Guess]:
        """Yield all guesses; where too many were in vain, forms and the cuts that were right."""
        how = made(miss, self._places.keys)
        of_it = of_text(how, self._likely) if how is not None else iter(())
        if self._vain[miss.asked.tenant, miss.word] > _PATIENCE:
            yield from islice(of_it, len(FORMS) + _LIKELY)
            return
        yield from of_requests(miss, self._places, self._known)
        yield from chain(of_dimensions(how, miss.asked) if how is not None else (), of_it)

    def _remember(self, cut: Cut | None) -> None:
        """Try a cut that was right before the others."""
        if cut is not None:
            self._likely = [cut, *(other for other in self._likely if other != cut)][:_LIKELY]

    def _by_place(self, miss: Miss, asked: Parts | None) -> Verdict | None:
        """Judge a key whose place and digest both are of something that nobody knows."""
        if asked is None:
            return None
        own = [parts for key in self._own(miss) if (parts := take_apart(key)) is not None]
        if not asked.place or asked.place == nearest(asked, own).place:
            return None
        if miss.evidence is not None and miss.evidence.adapter != self._places.adapter(
            miss.asked.adapter
        ):
            return Verdict(Cause.KEY_ADAPTER, "place and digest of an unknown adapter")
        return Verdict(Cause.KEY_MODEL_REVISION, "place and digest of an unknown model or revision")

    def _together(
        self, misses: Sequence[Miss], strange: Mapping[int, Looked]
    ) -> dict[int, Verdict]:
        """Judge what no guess leads to by how it spreads over requests.

        One identity under several keys: something else splits them. One key for several
        identities: something that tells them apart was cut off.
        """
        keys: dict[str, set[str]] = defaultdict(set)
        identities: dict[str, set[str]] = defaultdict(set)
        for n, look in strange.items():
            own = self._own(misses[n])[0]
            keys[own].add(look.key)
            identities[look.key].add(own)
        return {
            n: _spread(len(keys[self._own(misses[n])[0]]), len(identities[look.key]))
            for n, look in strange.items()
        }


_NAME_A_MODEL = (RESPONSES, SYSTEM_PROMPTS)
"""The layers whose keys name a model."""


def _noted(miss: Miss, look: Looked) -> tuple[Cause, str] | None:
    """Judge by what the gateway noted of how it made the key."""
    if look.fields:
        return Cause.KEY_DIMENSION, f"fields={','.join(sorted(look.fields))[:100]}"
    if look.characters is not None and look.characters < _length(miss):
        return Cause.KEY_TOKENISATION, f"characters={look.characters} of {_length(miss)}"
    return None


def _size(miss: Miss) -> int:
    asked = miss.asked
    return sum(len(part or "") for part in (asked.prompt, asked.system_prompt, asked.history))


def _length(miss: Miss) -> int:
    whole = miss.asked.system_prompt if miss.word == SYSTEM_PROMPTS else miss.asked.prompt
    return len(canonical_text(whole or ""))


def _spread(keys: int, identities: int) -> Verdict:
    if keys > 1:
        return Verdict(Cause.KEY_DIMENSION, f"one identity was asked under {keys} keys")
    if identities > 1:
        return Verdict(Cause.KEY_TOKENISATION, f"one key was asked for {identities} identities")
    return Verdict(Cause.UNKNOWN, "no change that was tried leads to the key")
