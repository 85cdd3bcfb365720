"""Projection and semantic fingerprint: a text is served by the nearest one that was answered.

As a semantic cache does it: within one tenant, history and value of each kept field, and past the
guard, a text whose cosine with an entry reaches the threshold is served by it and makes no entry;
any other becomes one. Texts without vector are matched exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warmup_lib.dimensions.codes import Ints, dense, mixed
from warmup_lib.places import ROUNDING

Matrix = np.ndarray[Any, np.dtype[np.float32]]
Reals = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]

_BLOCK = 512


def semantic_keys(
    place: Ints, text: Ints, vectors: Matrix, has_vector: Mask, threshold: Reals
) -> Ints:
    """Return for each request the number of the entry that serves it, or that it makes.

    Args:
        place: (requests,) number of all that an entry must share: tenant, fields, signature.
        text: (requests,) number of the text, a row of `vectors`.
        vectors: (texts, dimension), of length 1.
        has_vector: (texts,) which texts have one.
        threshold: (requests,) cosine from which a text is served, one for each place.
    """
    pair = dense(mixed(place, text))
    _, first = np.unique(pair, return_index=True)
    entry = np.arange(len(first), dtype=np.int64)
    # Distinct texts of a place, by the time of their first request.
    order = np.lexsort((first, place[first]))
    order = order[has_vector[text[first[order]]]]
    places = place[first[order]]
    bounds = np.flatnonzero(np.diff(places)) + 1
    for members in np.split(order, bounds):
        if len(members) > 1:
            lowest = float(threshold[first[members[0]]]) - ROUNDING
            leaders = _leaders(vectors[text[first[members]]], lowest)
            entry[members] = members[leaders]
    return entry[pair]


def _leaders(vectors: Matrix, threshold: float) -> Ints:
    """Return for each vector, in order, the entry that serves it: its own or an earlier one."""
    served = np.arange(len(vectors), dtype=np.int64)
    entries = np.empty_like(vectors)
    rows = np.empty(len(vectors), dtype=np.int64)
    count = 0
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        best, nearest = _nearest(block, entries[:count])
        within = block @ block.T
        new: list[int] = []  # entries made in this block
        for i in range(len(block)):
            close = within[i, new]
            place = int(close.argmax()) if new else -1
            if new and close[place] > best[i]:
                best[i], found = close[place], start + new[place]
            else:
                found = rows[nearest[i]] if count else -1
            if best[i] >= threshold:
                served[start + i] = found
            else:
                new.append(i)
        entries[count : count + len(new)] = block[new]
        rows[count : count + len(new)] = start + np.array(new, dtype=np.int64)
        count += len(new)
    return served


def _nearest(block: Matrix, entries: Matrix) -> tuple[Matrix, Ints]:
    if not len(entries):
        return np.full(len(block), -2.0, np.float32), np.zeros(len(block), np.int64)
    cosines = block @ entries.T
    nearest: Ints = cosines.argmax(axis=1)
    return cosines[np.arange(len(block)), nearest], nearest
