"""The words that set one group of texts apart from the others, in any script."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

Floats = np.ndarray[Any, np.dtype[np.float64]]

_MOST = 5
# Han characters that are grammar more often than a part of a word that says something.
_HAN_GRAMMAR = "的了吗呢吧啊么们我你您他她它这那是在和请把被嗎麼們妳這請"
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_THAI = "\u0e00-\u0e7f"
_RUNS = re.compile(
    rf"((?:(?![{_HAN_GRAMMAR}])[{_HAN}{_THAI}])+)"
    rf"|([\u30a1-\u30ff]{{2,}}|(?:(?![\u3040-\u30ff{_HAN}{_THAI}])[^\W\d_]){{2,}})"
)


def terms(text: str) -> list[str]:
    """Return the words of a text; of Han and Thai runs, all pieces of two and three characters.

    Japanese is read by its Han and katakana, since hiragana is mostly grammar.
    """
    found: list[str] = []
    for run, word in _RUNS.findall(text.casefold()):
        if len(word) > 2 or not word.isascii():
            found.append(word)
        found += [run[i : i + n] for n in (2, 3) for i in range(len(run) - n + 1)]
    return found


def keywords(texts: Sequence[str], groups: Sequence[int], count: int) -> list[list[str]]:
    """Return up to five keywords of each group, best first: TF-IDF with groups as documents.

    A term weighs by the share of a group's texts that hold it, times the logarithm of how many
    times fewer groups than there are it is spread over. The spread is the exponential of the
    entropy, not a count: a word that strays into other groups is still one group's word, while
    the grammar of each of a tenant's languages is spread evenly. Terms found in more than
    a third of the groups (but in one) are left out; a single group has none.

    Args:
        texts: The texts.
        groups: The group of each text, from 0.
        count: How many groups there are.
    """
    from scipy.sparse import coo_array
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(analyzer=terms, binary=True)
    try:
        held = vectorizer.fit_transform(texts)
    except ValueError:  # no text has a term
        return [[] for _ in range(count)]
    ones = np.ones(len(texts))
    member = coo_array(
        (ones, (np.asarray(groups), np.arange(len(texts)))), shape=(count, len(texts))
    )
    counts = (member.tocsr() @ held).toarray()
    sizes = np.bincount(groups, minlength=count)
    shares = counts / counts.sum(axis=0)
    spread = np.exp(-np.sum(shares * np.log(np.where(shares > 0, shares, 1.0)), axis=0))
    scores = counts / np.maximum(sizes, 1)[:, None] * np.log(count / spread)
    scores[:, (counts > 0).sum(axis=0) > max(1, count / 3)] = 0.0
    names = vectorizer.get_feature_names_out().tolist()
    return [_pick(row, names) for row in scores]


def _pick(scores: Floats, names: Sequence[str]) -> list[str]:
    """Take the best terms; of two of which one holds the other, the better one only."""
    ranked = sorted(
        (-score, -len(name), name)
        for score, name in zip(scores.round(9).tolist(), names, strict=True)
        if score > 0
    )
    picked: list[str] = []
    for _, _, term in ranked:
        if not any(term in other or other in term for other in picked):
            picked.append(term)
        if len(picked) == _MOST:
            break
    return picked
