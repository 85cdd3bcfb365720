"""The fields of a request that could be in a key, and why others can't.

They are columns of `requests`, the parameters, and whatever values the log has beside them
(`extra`), nested ones and lists included. A field that is measured when the answer is there, as its
cost, goes along with the answer and decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from warmup_lib.keys import SAMPLING_DEFAULTS, canonical_params

COLUMNS: Mapping[str, str] = {
    "model": "model",
    "model_revision": "model_revision",
    "adapter": "adapter",
    "system_prompt": "CAST(hash(NULLIF(system_prompt, '')) AS VARCHAR)",
    "tools": "CAST(hash(tools) AS VARCHAR)",
    "user_segment": "user_segment",
    "session_id": "session_id",
    "locale": "locale",
    "intent": "intent",
    "ab_arm": "ab_arm",
    "hour": "CAST(hour(ts AT TIME ZONE $zone) AS VARCHAR)",
    "day": "CAST(CAST(ts AT TIME ZONE $zone AS DATE) AS VARCHAR)",
}
"""Field -> its value as text, in DuckDB's SQL over `requests`."""

IN_EVERY_KEY = frozenset({"model", "model_revision", "adapter", "system_prompt", "tools"})
"""Fields that are part of an answer's identity whatever the settings are (docs/keys.md)."""

AGE = "day"
"""Answers that change from day to day are the business of the TTL: a day is tried as an
explanation, and is never proposed as a dimension."""

MOST = 24
"""Fields that are studied together; of more, those that tell most by themselves."""

REAL = 24
"""Values beyond which a field of fractions is a measured number; a setting has fewer."""

_DEPTH = 4
"""Levels of nesting that are looked into."""

_VOLATILE = 0.9
"""A field with a new value in this share of its requests is an id of the request."""

_FEW = 20
"""Requests below which a field with a new value each time is not yet called an id."""

_WORDS = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]*")
_OUTCOMES = frozenset(
    {
        "at", "attempts", "cached", "cost", "costs", "duration", "elapsed", "error", "exception",
        "feedback", "hit", "latency", "ms", "retries", "seconds", "spend", "time", "timestamp",
        "tokens", "ts", "ttft", "usage",
    }
)  # fmt: skip
"""Last words of names of what is known only with the answer, or once it was asked for."""

_JUDGEMENTS = frozenset({"price", "rating", "score"})
_JUDGED = frozenset(
    {
        "ab", "answer", "completion", "confidence", "eval", "evaluation", "feedback", "judge",
        "llm", "model", "output", "quality", "relevance", "response", "reward", "safety",
        "sentiment", "similarity", "thumbs", "total", "toxicity", "user",
    }
)  # fmt: skip
"""What a judgement is about where it is one of the answer; a credit rating is not."""

_NESTED = "OBJECT"
_OURS = "cache_evidence"
"""What a gateway notes about its own look-ups (warmup_lib.evidence)."""

CONSTANT = "has one value only"
VOLATILE = "has a new value in nearly every request: an id"
OUTCOME = "is known only with the answer, by its name"
MEASURED = f"is a measured number: fractions, of more than {REAL} values"
DEEP = f"is nested deeper than {_DEPTH} levels"
WANTED = "left out as asked"
TOO_MANY = f"tells less of the answers by itself than the {MOST} fields that are studied"

NOT_STUDIED = frozenset({OUTCOME, MEASURED, DEEP, VOLATILE, WANTED, TOO_MANY})
"""Reasons for which a field that answers depend on could be left out."""


@dataclass(frozen=True)
class JsonField:
    """A value in a JSON column.

    Attributes:
        name: Its name for the user.
        path: Its place.
        real: Whether it holds fractions.
    """

    name: str
    path: tuple[str, ...]
    real: bool = False

    @property
    def pointer(self) -> str:
        """Its place as an RFC 6901 pointer, which any name can be written in."""
        return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in self.path)


def extra_fields(structures: Iterable[str]) -> tuple[list[JsonField], dict[str, str]]:
    """Return the fields of `extra` that could be dimensions, and why the others can't.

    Args:
        structures: What DuckDB's `json_structure` gives, each once.
    """
    kinds: dict[tuple[str, ...], set[str]] = {}
    for structure in structures:
        for path, kind in _leaves(orjson.loads(structure), ()):
            kinds.setdefault(path, set()).add(kind)
    kept, out = [], {}
    for path in sorted(kinds):
        field = JsonField(".".join(("extra", *path)), path, "DOUBLE" in kinds[path])
        if path[0] == _OURS or _is_outcome(path[-1]):
            out[field.name] = OUTCOME
        elif _NESTED in kinds[path]:
            out[field.name] = DEEP
        else:
            kept.append(field)
    return kept, out


def params_fields(structures: Iterable[str]) -> list[JsonField]:
    """Return a field for each parameter that requests carry, whatever its type."""
    names = {name for structure in structures for name in orjson.loads(structure)}
    return [JsonField(f"params.{name}", (name,)) for name in sorted(names)]


def parameter(name: str, value: str | None) -> str | None:
    """Return a parameter's JSON in its canonical form, None for a default or none.

    Args:
        name: Of the parameter, without `params.`.
        value: Its JSON.
    """
    if value is None or name not in SAMPLING_DEFAULTS:
        return None if value == "null" else value
    said = canonical_params({name: orjson.loads(value)})
    return None if said == "{}" else said


def _leaves(structure: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the place and the kind of each value; a list is one, whatever it holds."""
    if isinstance(structure, dict) and len(path) < _DEPTH:
        for name, inner in structure.items():
            yield from _leaves(inner, (*path, name))
    elif path and structure != "NULL":
        in_list = structure[0] if isinstance(structure, list) and structure else structure
        yield path, _NESTED if isinstance(structure, dict) else str(in_list)


def _is_outcome(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    last, before = words[-1:], words[-2:-1]
    if last and last[0] in _JUDGEMENTS:
        return not before or before[0] in _JUDGED
    return last != [] and (last[0] in _OUTCOMES or words[-2:] == ["finish", "reason"])


def unusable(values: int, present: int, real: bool = False) -> str | None:
    """Return why a field can't be a dimension; None: it can.

    Args:
        values: Distinct values, absence not counted.
        present: Requests that have one.
        real: Whether they are fractions.
    """
    if present >= _FEW and values >= _VOLATILE * present:
        return VOLATILE
    return MEASURED if real and values > REAL else None
