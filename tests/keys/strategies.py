"""Keys under the published secret, and the requests, texts and names that hypothesis draws."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.keys.reader import Reader
from warmup_lib.keys import Dimension, Identity, Keys, Request

PUBLISHED = json.loads(Path(__file__).with_name("vectors.json").read_text(encoding="utf-8"))
SECRET = bytes.fromhex(PUBLISHED["secret_hex"])
DIMENSIONS = {name: Dimension(**setting) for name, setting in PUBLISHED["dimensions"].items()}
KEYS = Keys(SECRET, PUBLISHED["template"], DIMENSIONS)
READER = Reader(SECRET, PUBLISHED["template"], PUBLISHED["dimensions"])

# Characters that texts rarely hold and that rules are about: fences, white space, other forms.
ODD = "`~\u1fef\uff40\uff5e \t\n\r\x0b\x1c\x85\xa0\u2028\u3000\u0308\u0345\u0390\u03a3\u00c5\u0131"
ODD += (
    "\u0130\ufb01\u1e9e\uff21\u2167\u00bd\u200b\u200d\ufe0f\u0958\u0e33\u1100\u1161\uf900\U0001f468"
)
UNSEEN = (
    "\x00\x1f\x7f\xad\u200b\u200d\u202e\u2066\ufeff\ufe0f\u034f\u3164\ue000\u0378\ud800\U000e0041"
)
PATTERNS = "*?%[]{}()|@:/\\'\"-<>^$#;=~!,. "

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
odd_texts = st.text(st.sampled_from(ODD) | st.characters(), max_size=40)
fenced_texts = st.lists(
    st.sampled_from(
        ["```", "````", "~~~", "~~~~", "\uff40`\u1fef", "\uff5e\uff5e\uff5e", "``", "~~"]
    )
    | st.sampled_from(["\n", " ", "  ", "\t", "a", "B", "\ufb01", "\u0390", "e\u0301", "\u2028"]),
    max_size=14,
).map("".join)
words = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20)
spaces = st.sampled_from([" ", "  ", "\t", " \t ", "\u00a0", "\u3000", "\u2028"])
tenants = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True)
hostile = st.text(
    st.sampled_from(UNSEEN) | st.sampled_from(PATTERNS) | st.sampled_from("aAb1") | st.characters(),
    max_size=24,
)
"""Names and texts meant to get out of their place: patterns, separators, what is not seen."""

seen = st.text(
    st.sampled_from(PATTERNS + "aAb1")
    | st.characters(categories=["L", "N", "P", "S"])
    | st.characters(categories=["M", "Zs"]),
    min_size=1,
    max_size=16,
)
"""Names that a tenant may mostly have."""

scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
"""Whatever JSON can hold, and what Python's reader takes besides: NaN and infinities."""

messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"])},
    optional={
        "content": st.none()
        | odd_texts
        | st.lists(values | st.fixed_dictionaries({"text": texts})),
        "name": st.none() | texts,
        "tool_calls": st.lists(values, max_size=2),
        "id": words,
    },
)

requests: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"tenant": tenants, "model": words, "prompt": odd_texts | fenced_texts},
    optional={
        "system_prompt": odd_texts | fenced_texts,
        "history": st.lists(messages, max_size=3),
        "tools": st.lists(values, max_size=3),
        "model_revision": texts,
        "adapter": texts,
        "params": st.dictionaries(
            st.sampled_from(
                ["temperature", "seed", "n", "stop", "max_tokens", "max_completion_tokens", "user"]
            ),
            values,
            max_size=4,
        ),
        "dimensions": st.dictionaries(
            st.sampled_from(["device", "tier", "locale"]), values, max_size=3
        ),
    },
)


def forms(text: str) -> list[str]:
    """Return a text in all forms in which the same characters can be written."""
    return [unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")]


def of(**parts: Any) -> Identity:
    """Return the identity of a plain request with these parts."""
    return KEYS.identity(Request(**{"tenant": "acme", "model": "m", "prompt": "hello"} | parts))
