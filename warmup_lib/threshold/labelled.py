"""Pairs from a user's file: two texts and whether they may share an answer, or texts and labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warmup_lib.embed.encoder import Floats
from warmup_lib.errors import InputDataError
from warmup_lib.guard import compatible
from warmup_lib.keys import Keys
from warmup_lib.threshold.pairs import EVERYONE, Found, Pair, Question, nearest_pairs

Encode = Callable[[Sequence[str]], tuple[Floats, np.ndarray[Any, np.dtype[np.bool_]]]]
"""Returns vectors as rows, of length 1 or all zero, and which of the texts have one."""


@dataclass(frozen=True)
class _Given:
    """Two texts of one line, and whether they may share an answer."""

    tenant: str
    a_text: str
    b_text: str
    same: bool


def read_pairs(file: Path, keys: Keys, encode: Encode) -> Found:
    """Return the pairs of a file of JSON lines, all of one of two forms.

    `{"a": TEXT, "b": TEXT, "same": true or false}` is a pair as it is, a repeated one counts once;
    `{"text": TEXT, "label": LABEL}` is a question, paired with its nearest neighbour. Both may hold
    a `tenant`; without one they stand for everyone.

    Raises:
        InputDataError: The file can't be read, or a line is of neither form.
    """
    given, asked = _read(file)
    texts = sorted(
        {t for p in given for t in (p.a_text, p.b_text)} | {text for _, text, _ in asked}
    )
    rows, there = encode(texts)
    digests = {text: keys.text_digest(text) for text in texts}
    vectors = {digests[text]: row for text, row, has in zip(texts, rows, there, strict=True) if has}
    shown = {digest: text for text, digest in digests.items()}
    if asked:
        questions = [
            Question(tenant, digests[text], text, frozenset([label]))
            for tenant, text, label in asked
        ]
        return Found(nearest_pairs(questions, vectors), texts=shown)
    return _found(given, digests, vectors, shown)


def _found(
    given: Sequence[_Given],
    digests: Mapping[str, str],
    vectors: Mapping[str, Floats],
    shown: Mapping[str, str],
) -> Found:
    pairs: dict[tuple[str, str, str], Pair] = {}
    refused = refused_wrong = 0
    for one in given:
        a, b = sorted((digests[one.a_text], digests[one.b_text]))
        if a == b or a not in vectors or b not in vectors:
            continue  # equal texts are found by identity, texts without a vector never
        if not compatible(one.a_text, one.b_text):
            refused += 1
            refused_wrong += not one.same
            continue
        cosine = float(vectors[a] @ vectors[b])
        pairs[one.tenant, a, b] = Pair(one.tenant, a, b, cosine, not one.same)
    return Found([pairs[k] for k in sorted(pairs)], refused, refused_wrong, shown)


def _read(file: Path) -> tuple[list[_Given], list[tuple[str, str, str]]]:
    given: list[_Given] = []
    asked: list[tuple[str, str, str]] = []
    for number, row in _rows(file):
        tenant = row.get("tenant", EVERYONE)
        if not isinstance(tenant, str) or not tenant:
            raise InputDataError(f"{file}, line {number}: `tenant` is no name")
        match row:
            case {"a": str(a), "b": str(b), "same": bool(same)}:
                given.append(_Given(tenant, a, b, same))
            case {"text": str(text), "label": str(label)}:
                asked.append((tenant, text, label))
            case _:
                raise InputDataError(
                    f'{file}, line {number}: neither {{"a": TEXT, "b": TEXT, "same": true|false}} '
                    'nor {"text": TEXT, "label": LABEL}'
                )
        if given and asked:
            raise InputDataError(f"{file}, line {number}: pairs and labels are mixed in one file")
    if not given and not asked:
        raise InputDataError(f"{file} holds no pairs")
    return given, asked


def _rows(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    row = json.loads(line)
                    yield number, row if isinstance(row, dict) else {}
    except OSError as error:
        raise InputDataError(f"can't read {file}: {error.strerror}") from error
    except ValueError as error:  # its message could hold a text
        raise InputDataError(f"{file} is not JSON lines in UTF-8") from error
