"""What a study says, as JSON and in sentences."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from warmup_lib.dimensions.codes import Ints, distinct
from warmup_lib.dimensions.fields import AGE, IN_EVERY_KEY, NOT_STUDIED
from warmup_lib.dimensions.merging import Merging, merging
from warmup_lib.dimensions.reading import Log
from warmup_lib.dimensions.selection import DOUBT
from warmup_lib.dimensions.study import ENOUGH, FOLLOWS, UNDECIDED, Study

_NAMED = 8
"""Fields that a sentence names."""


@dataclass(frozen=True)
class Semantic:
    """The suggested fields with a semantic fingerprint, on the latest stretch of a log.

    Attributes:
        log: The stretch.
        exact: What the suggested fields come to on it, texts being equal.
        similar: What they come to, texts being similar.
    """

    log: Log
    exact: Merging
    similar: Merging


def semantic(study: Study, log: Log, keys: Ints) -> Semantic:
    """Return what semantic keys come to on a stretch of a study's log."""
    begins = study.log.requests - log.requests
    exact = study.key(study.suggested)[begins:]
    return Semantic(log, merging(log, exact), merging(log, keys))


def facts(study: Study, similar: Semantic | None) -> dict[str, Any]:
    """Return the study as JSON values; fields by name, never a value of a request."""
    log, evidence = study.log, study.evidence
    compared = np.bincount(evidence.question) if len(evidence.question) else np.zeros(0)
    names = {
        "full": study.fields,
        "contract_and_suggested": study.beyond_contract(),
        "suggested": study.suggested,
        "question_only": (),
    }
    schemes: dict[str, Any] = {
        name: {"dimensions": list(names[name]) if name in names else None, **_merged(m)}
        for name, m in study.schemes.items()
    }
    if similar is not None:
        schemes["suggested_and_semantic"] = {
            "dimensions": list(study.suggested),
            **_merged(similar.similar),
            "requests": similar.similar.requests,
            "exact_on_the_same": _merged(similar.exact),
        }
    return {
        "window": {
            "from": _moment(log, 0),
            "to": _moment(log, -1),
            "requests": study.schemes["full"].requests,
            "bypassed": int(np.count_nonzero(~log.asked)),
            "questions": distinct(log.question),
            "answers": int(np.count_nonzero(log.answer >= 0)),
            "compared_questions": int(np.count_nonzero(compared > 1)),
            "compared_requests": int(compared.sum()),
        },
        "suggested": list(study.suggested),
        "undecided": [n for n, v in study.verdicts.items() if v == UNDECIDED],
        "costs_most": study.costs_most,
        "noise_floor": {"rate": study.noise_floor, "judged_hits": study.noise.judged},
        "schemes": schemes,
        "dimensions": {name: _dimension(study, name) for name in log.values},
        "growth": [
            {"dimensions": n, "added": s.added, "possible_keys": s.possible, **_merged(s.merging)}
            for n, s in enumerate(study.growth)
        ],
        "left_out": dict(sorted(log.left_out.items())),
        "says": says(study),
    }


def _merged(m: Merging) -> dict[str, Any]:
    return {
        "keys": m.keys,
        "hit_ratio": m.hit_ratio,
        "wrong_merge_rate": m.wrong_rate,
        "wrong_merges": m.wrong,
        "judged_hits": m.judged,
    }


def _moment(log: Log, row: int) -> str | None:
    if not log.requests:
        return None
    return datetime.fromtimestamp(int(log.at[row]) / 1e6, UTC).isoformat(timespec="seconds")


def _dimension(study: Study, name: str) -> dict[str, Any]:
    requests = study.schemes["full"].requests
    found = study.selection.given_rest.get(name)
    alone = study.selection.alone.get(name)
    added, verdict = study.keys_added.get(name), study.verdicts[name]
    return {
        "verdict": verdict,
        "values": distinct(study.log.values[name]),
        "in_every_key": name in IN_EVERY_KEY or name.startswith("params."),
        "comparisons": found.comparisons if found else 0,
        "effect": found.effect if found else None,
        "at_most": None if verdict == FOLLOWS else found.at_most if found else 1.0,
        "p": study.selection.p(found) if found else 1.0,
        "effect_alone": alone.effect if alone else None,
        "p_alone": study.selection.p(alone) if alone else 1.0,
        "keys_added": added,
        "hit_ratio_lost": None if added is None else added / max(1, requests),
        "keys_saved_from_full": study.keys_saved.get(name),
        "same_as": study.same_as.get(name),
    }


def says(study: Study) -> list[str]:
    """Return what the log tells, in sentences."""
    said = [_suggestion(study), *_costs(study)]
    if undecided := _undecided(study):
        said.append(
            f"Too few repeats to decide about {_listed(undecided)}: requests of one question that "
            "differ in it are rare, or answers differ as much without it. Keep such a field where "
            "you know that answers depend on it."
        )
    for name, needed in study.same_as.items():
        said.append(
            f"{name} goes along with {needed} throughout: the log can't tell the two apart."
        )
    if AGE in study.selection.needed:
        said.append(
            "Answers change from day to day with nothing else changing: that is for the TTL of "
            "stored answers, no dimension helps against it."
        )
    return [*said, *_noise(study)]


def _suggestion(study: Study) -> str:
    if not study.evidence.values:
        return (
            "No question came again with another value of any field and an answer of its own: "
            "nothing can be said about what answers depend on."
        )
    if not study.suggested:
        return f"No field was found that changes answers{_alone(study)}."
    scheme = study.schemes["suggested"]
    return (
        f"Suggested allow-list: {', '.join(study.suggested)}. {scheme.keys:,} keys where all "
        f"fields make {study.schemes['full'].keys:,}, {_percent(scheme.hit_ratio)} of requests "
        f"could hit instead of {_percent(study.schemes['full'].hit_ratio)}, and "
        f"{scheme.wrong:,} of {scheme.judged:,} judged hits would give another answer."
        f"{_to_name(study)}"
    )


def _alone(study: Study) -> str:
    """Return what that comes to: only where it is seen does the question alone make the key."""
    alone = study.schemes["question_only"]
    wrong = alone.wrong_rate
    if wrong is None or alone.judged < ENOUGH:
        return f"; of hits by the question alone, only {alone.judged:,} can be judged"
    if wrong > DOUBT:
        return (
            f", and yet {_percent(wrong)} of hits would give another answer if the question alone "
            f"made the key: by chance (sampling), or by {_unstudied(study)}"
        )
    return "" if _undecided(study) else ": the question alone makes the key"


def _unstudied(study: Study) -> str:
    """Return what of the requests was not looked at."""
    names = [n for n, why in sorted(study.log.left_out.items()) if why in NOT_STUDIED]
    if not names:
        return "something that is not in the log"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"what was left out ({', '.join(names[:_NAMED])}{more}) or is not in the log"


def _undecided(study: Study) -> list[str]:
    return [n for n, v in study.verdicts.items() if v == UNDECIDED and n != AGE]


def _to_name(study: Study) -> str:
    """Return what of the suggestion is not in every key already; empty where all of it is."""
    names = [name.removeprefix("extra.") for name in study.beyond_contract()]
    if not names:
        return " All of it is in every key already."
    return f" To be named in the settings, under `dimensions` (docs/keys.md): {', '.join(names)}."


def _costs(study: Study) -> list[str]:
    name = study.costs_most
    if name is None:
        return []
    added = study.keys_added[name]
    lost = added / max(1, study.schemes["full"].requests)
    return [
        f"{name} costs most: in the key it adds {added:,} keys and takes {100 * lost:.2f} points "
        "of hit ratio."
    ]


def _noise(study: Study) -> list[str]:
    wrong = study.schemes["suggested"].wrong_rate or 0.0
    if study.noise_floor is None and wrong:
        return [
            f"Hits that agree in all fields are too few ({study.noise.judged}) to tell how many of "
            "the other answers are chance (sampling)."
        ]
    if not study.noise_floor:
        return []
    return [
        f"Answers differ in {_percent(study.noise_floor)} of hits that agree in all studied "
        f"fields: by chance (sampling), or by {_unstudied(study)}. With the suggested fields "
        f"{_percent(wrong)} differ."
    ]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"
