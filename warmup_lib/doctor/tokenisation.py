"""Trap `tokenisation`: keys taken from tokens or cut text, and one text tokenised in two ways.

Such a key is one for different prompts (the answer of one is served to the other), or several for
one prompt (it is never found).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warmup_lib.doctor.base import Part, counted
from warmup_lib.doctor.log import Log
from warmup_lib.doctor.splits import FEW, Splits
from warmup_lib.errors import InputDataError
from warmup_lib.targets.chat import Chat, Head, own
from warmup_lib.targets.host import ModelHost

WHOLE = (
    "Take keys from the whole canonical text, before any truncation (docs/keys.md), never from "
    "token ids."
)
_SAME_TOKENIZER = (
    "Serve the model with the tokenizer files of its folder; pin their revision beside the model's."
)
_NOT_CUT = "Look for `truncate_prompt_tokens` or a gateway that cuts or pads prompts."

_SAMPLES = (
    "How do I reset my PIN?",
    "Wie hoch ist die Überweisungsgrenze für Girokonten?",
    "如何重置我的密码?",
    "def add(a: int, b: int) -> int:\n    return a + b",
    "1,234.56 EUR on 2026-03-14 \N{EM DASH} caf\N{LATIN SMALL LETTER E WITH ACUTE}",
)
"""Texts whose tokens differ between most tokenizers: scripts, digits, spaces, code."""

_LENGTHS = (8, 120, 360)
"""Lengths of the probes, in words: inside one cache block, several, and many."""


@dataclass(frozen=True)
class Length:
    """A prompt's length as it was tokenised, and as the host counted it when it was served."""

    words: int
    tokenised: int
    prompt: int


def look_at_log(log: Log, splits: Splits) -> Part:
    """Look for one key of different prompts, and several keys of one prompt's forms."""
    shared = _shared(log)
    split = splits.of("text", "unexplained")
    keys = {key.text for row in log.rows for key in row.keys}
    if not keys:
        return Part("not_checked", "the log holds no cache keys (`cache_key`, `cache_evidence`)")
    told = []
    if shared:
        told.append(
            f"standing for different prompts: {counted(len(shared), 'key')} "
            f"({counted(sum(shared.values()), 'request')})"
        )
    if len(split) >= FEW:
        told.append(
            f"{counted(len(split), 'prompt')} have {sum(s.keys for s in split):,} keys, which "
            "differ by the form of the text and by no field of the log"
        )
    if told:
        return Part("found", "; ".join(told), WHOLE)
    return Part(
        "ok", f"each of {counted(len(keys), 'logged key')} stands for one prompt, and has one form"
    )


def _shared(log: Log) -> dict[str, int]:
    """Return the keys under which different prompts were asked, with their requests."""
    contents: dict[tuple[str, str], set[Any]] = defaultdict(set)
    requests: dict[tuple[str, str], int] = defaultdict(int)
    for row in log.rows:
        of = {"responses": row.content, "embeddings": row.text_digest}
        for key in row.keys:
            if key.layer in of:
                contents[key.layer, key.text].add(of[key.layer])
                requests[key.layer, key.text] += 1
    return {key[1]: requests[key] for key, seen in contents.items() if len(seen) > 1}


async def look_at_host(host: ModelHost, model: str, lengths: Sequence[Length]) -> Part:
    """Ask for the tokens of texts alone, again, and inside prompts; compare with what is served.

    Args:
        host: The host.
        model: A served model.
        lengths: Prompts of several sizes, as tokenised and as served.

    Raises:
        HostUnavailable: No answer.
    """
    alone = [await tokens(host, model, text) for text in _SAMPLES]
    if not all(alone):
        return Part("not_checked", "the host has no /tokenize")
    if alone != [await tokens(host, model, text) for text in _SAMPLES]:
        return Part("found", "the host gives one text different tokens", _SAME_TOKENIZER)
    wrong = [one for one in lengths if one.prompt != one.tokenised]
    if wrong:
        told = ", ".join(f"{one.prompt:,} for {one.tokenised:,}" for one in wrong)
        return Part("found", f"the host takes prompts for other lengths: {told} tokens", _NOT_CUT)
    checked = f"{len(_SAMPLES)} texts have the same tokens twice"
    return Part("ok", f"{checked}; {len(lengths)} prompts reach the model at their whole length")


async def measured(host: ModelHost, model: str) -> list[Length]:
    """Return the lengths of prompts of several sizes.

    Raises:
        HostUnavailable: No answer.
        RequestRefused: The host refuses one.
    """
    found = []
    for words in _LENGTHS:
        text = " ".join(f"item {n}" for n in range(words // 2))
        chat = Chat(Head(model, None), text, headers=own("doctor"))
        body = {"model": model, "messages": chat.head.messages(text)}
        tokenised = await _tokens(host, body)
        answer = await host.chat(chat)
        found.append(Length(words, len(tokenised), answer.prompt_tokens))
    return found


async def look_at_folder(host: ModelHost, model: str, folder: Path) -> Part:
    """Compare the host's tokens with those of the tokenizer in a model folder.

    Raises:
        HostUnavailable: No answer.
        InputDataError: The folder's tokenizer can't be read.
    """
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    if not file.is_file():
        return Part("not_checked", "the model folder has no tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises nothing more special
        raise InputDataError(f"{file} can't be read: {type(error).__name__}") from None
    differ = 0
    for text in _SAMPLES:
        served = await tokens(host, model, text)
        if not served:
            return Part("not_checked", "the host has no /tokenize")
        differ += served != tokenizer.encode(text, add_special_tokens=False).ids
    if differ:
        told = f"{differ} of {len(_SAMPLES)} texts have other tokens on the host than in the folder"
        return Part("found", told, _SAME_TOKENIZER)
    return Part("ok", "host and folder have the same tokenizer")


async def tokens(host: ModelHost, model: str, text: str) -> Sequence[int]:
    """Return the tokens of a text by itself; empty: the host does not tell.

    Raises:
        HostUnavailable: No answer.
    """
    return await _tokens(host, {"model": model, "prompt": text, "add_special_tokens": False})


async def _tokens(host: ModelHost, body: dict[str, Any]) -> Sequence[int]:
    response = await host.send("POST", "/tokenize", json=body)
    if response.status_code != 200:
        return ()
    with host.shape():
        return [int(token) for token in response.json()["tokens"]]
