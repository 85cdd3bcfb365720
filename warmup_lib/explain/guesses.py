"""Guesses at what a wrong key was made of: each gives a key that the asked one is compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from warmup_lib.causes import Cause
from warmup_lib.evidence import FIELD
from warmup_lib.explain.known import Known, request_of
from warmup_lib.explain.miss import L1, L2, Asked, Miss
from warmup_lib.explain.rewording import Cut, cuts, forms
from warmup_lib.keys import Dimension, Keys, Request, canonical_text, embedding_text
from warmup_lib.places import EMBEDDINGS, RESPONSES, Places


class Guess(NamedTuple):
    """What may have been keyed.

    Attributes:
        cause: The cause that it would be.
        told: What shows it.
        digest: The key or digest that it leads to.
        cut: The part of the text that it is taken from; None: it is of no part.
    """

    cause: Cause
    told: str
    digest: str
    cut: Cut | None = None


_FIELDS = (
    "request_id",
    "user_segment",
    "session_id",
    "locale",
    "intent",
    "ab_arm",
    "prompt_tokens",
)
_NESTED = 2
_LONGEST = 200


@dataclass(frozen=True)
class Made:
    """How the digest of a layer's key is made of one text.

    Attributes:
        text: The text as logged.
        right: The form that the digest is taken from.
        digest: Returns the digest over a text, and over more than it where more is given.
    """

    text: str
    right: str
    digest: Callable[..., str]


def made(miss: Miss, keys: Keys) -> Made | None:
    """Return how a miss's digest is made; None: of no text that the log holds whole."""
    asked = miss.asked
    if asked.redacted:
        return None
    if miss.layer == RESPONSES:
        context, right = asked.context_digest, canonical_text(asked.prompt)
        return Made(asked.prompt, right, lambda *t: keys.digest("response", context, *t))
    if miss.tier == L1:
        text, tools = asked.system_prompt or "", asked.tools or ""
        place = (asked.tenant, asked.model, asked.model_revision or "", asked.adapter or "")
        template = keys.template
        return Made(text, text, lambda t, *m: keys.digest("head", *place, template, t, tools, *m))
    if miss.tier == L2:
        segment = asked.user_segment or ""
        return Made(segment, segment, lambda *t: keys.digest("user_segment", *t))
    if miss.layer == EMBEDDINGS:
        right = embedding_text(asked.prompt)
        return Made(asked.prompt, right, lambda *t: keys.digest("text", *t))
    return None


def of_text(how: Made, likely: Sequence[Cut] = ()) -> Iterator[Guess]:
    """Guess that the text was changed or cut before the digest was taken.

    Args:
        how: How the digest is made.
        likely: The cuts to try first.
    """
    for name, text in forms(how.text, how.right):
        yield Guess(Cause.KEY_NORMALISATION, f"text={name}", how.digest(text))
    for whole in dict.fromkeys((how.right, how.text)):
        for cut, text in cuts(whole, likely):
            told = f"text={cut} of {len(whole)}"
            yield Guess(Cause.KEY_TOKENISATION, told, how.digest(text), cut)


def of_dimensions(how: Made, asked: Asked) -> Iterator[Guess]:
    """Guess that a field of the request that changes no answer is a part of the digest."""
    whole = how.digest(how.right)
    for name, value in extra_fields(asked).items():
        told = f"field={name}"
        for said in (value, f"{name}={value}", f"{name}:{value}"):
            yield Guess(Cause.KEY_DIMENSION, told, how.digest(how.right, said))
            for joined in (f"{how.right}|{said}", f"{how.right}:{said}", f"{how.right}\n{said}"):
                yield Guess(Cause.KEY_DIMENSION, told, how.digest(joined))
            yield Guess(Cause.KEY_DIMENSION, told, f"{whole}{said}")


def of_requests(miss: Miss, places: Places, known: Known) -> Iterator[Guess]:
    """Guess that another adapter, revision, template, or a part of the history was keyed.

    Yields whole keys.
    """
    request = request_of(miss.asked, places.keys)
    if request is None:
        return
    keys, right = places.keys, places.adapter(miss.asked.adapter)
    for adapter in _adapters(miss, places, known):
        told = f"adapter={'none' if adapter is None else adapter[:_LONGEST]}"
        other = replace(request, adapter=adapter)
        served = places.adapter(adapter)
        pairs = ((other, adapter), (other, served), (request, adapter), (other, right))
        for one, place in pairs:
            yield Guess(Cause.KEY_ADAPTER, told, _key(miss, one, places, place))
    for model in known.models_beside(request.model):
        for revision in known.revisions_of(model):
            if (model, revision) != (request.model, request.model_revision):
                other = replace(request, model=model, model_revision=revision)
                told = f"model={model[:_LONGEST]} revision={revision}"
                yield Guess(Cause.KEY_MODEL_REVISION, told, _key(miss, other, places, right))
    seen = miss.evidence.template if miss.evidence is not None else None
    for template in {seen or "", ""} - {keys.template}:
        told = f"template={template or 'none'} own={keys.template or 'none'}"
        under = replace(places, keys=keys.other(template))
        yield Guess(Cause.KEY_TEMPLATE, told, _key(miss, request, under, right))
    for kept in range(len(request.history)):
        cut = replace(request, history=request.history[len(request.history) - kept :])
        told = f"history=last {kept} of {len(request.history)}"
        yield Guess(Cause.KEY_TOKENISATION, told, _key(miss, cut, places, right))
    for name, value in extra_fields(miss.asked).items():
        wider = replace(places, keys=keys.other(keys.template, {name: Dimension()}))
        said = replace(request, dimensions={**request.dimensions, name: value})
        yield Guess(Cause.KEY_DIMENSION, f"field={name}", _key(miss, said, wider, right))


def extra_fields(asked: Asked) -> dict[str, str]:
    """Return what else a request holds, by name: fields that change no answer, and its hour."""
    found = {name: getattr(asked, name) for name in _FIELDS}
    found |= {"hour": f"{asked.ts.hour}", "hour_2": f"{asked.ts:%H}", "day": f"{asked.ts:%Y-%m-%d}"}
    held = orjson.loads(asked.extra) if asked.extra else {}
    held.pop(FIELD, None)
    found |= dict(_scalars(held, _NESTED))
    found |= dict(_scalars(orjson.loads(asked.params) if asked.params else {}, 1))
    return {k: str(v) for k, v in found.items() if v not in (None, "") and len(str(v)) <= _LONGEST}


def _scalars(held: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in held.items():
        if isinstance(value, str | int | float):
            yield name, value
        elif isinstance(value, Mapping) and depth > 1:
            yield from _scalars(value, depth - 1)


def _adapters(miss: Miss, places: Places, known: Known) -> list[str | None]:
    """Return the adapters to try: none, all that are known, and what hosts serve them as."""
    logged = miss.asked.adapter
    asked_for = miss.evidence.adapter if miss.evidence is not None else None
    names = {asked_for, logged, *known.adapters, *places.adapters.values()}
    right = places.adapter(logged)
    return [*([None] if right is not None else []), *sorted(names - {None, right}, key=str)]


def _key(miss: Miss, request: Request, places: Places, adapter: str | None) -> str:
    """Return the key of a request that differs in something, with an adapter in its place."""
    identity = places.keys.identity(request)
    of, bare = replace(request, adapter=adapter), replace(places, adapters={})
    if miss.layer == RESPONSES:
        return bare.answer(of, identity.response)
    if miss.tier == L1:
        return bare.system_prompt(of, identity.head)
    if miss.layer == EMBEDDINGS and miss.tier is None:
        return bare.embedding(request.tenant, identity.text)
    return ""
