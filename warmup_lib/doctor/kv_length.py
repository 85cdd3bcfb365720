"""Trap `kv_length`: prompts padded or cut to a static length instead of kept at their own.

A host that reserves the longest context for each request holds few requests, and a padded prompt
shares no prefix with the real one.
"""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Sequence

from warmup_lib.doctor.base import Part, counted
from warmup_lib.doctor.log import Log, Row
from warmup_lib.doctor.tokenisation import Length
from warmup_lib.targets.chat import Chat, ChatResult, Head, own
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.metrics import CacheSize, cache_size
from warmup_lib.targets.models import served_models

LEAST = 20
"""Fewer requests with a length tell nothing of how lengths are spread."""

STATIC_SHARE = 0.25
"""This share of the requests with one and the same length is no chance."""

STATIC_TEXTS = 10
SPREAD = 64
"""Texts of so many lengths, this many characters apart, have no reason to be equal in tokens."""

_ALONE = 3
_BESIDE = 4
"""A static length is so many times as frequent as each length up to so many tokens beside it;
short texts are of many sizes too, and of few lengths, all of which are frequent."""

_TYPICAL = 0.95

_OWN_LENGTH = (
    "Prefill each prompt at its own length: no padding to a maximum, and no cut; take the longest "
    "length as `--max-model-len` only."
)
_CACHE_ON = "Serve with prefix caching (vLLM: `--enable-prefix-caching`)."


def look_at_log(log: Log) -> Part:
    """Look for one length in tokens that prompts of all lengths in text have."""
    rows = [row for row in log.rows if row.prompt_tokens]
    if len(rows) < LEAST:
        return Part("not_checked", f"the log holds {len(rows)} prompt lengths; {LEAST} tell")
    counts = Counter(row.prompt_tokens for row in rows)
    for tokens, count in counts.most_common(3):
        sizes = {_characters(row) for row in rows if row.prompt_tokens == tokens}
        texts = sorted(sizes)
        spread = texts[-1] - texts[0] >= SPREAD and len(texts) >= STATIC_TEXTS
        beside = max(counts[tokens + n] for n in range(-_BESIDE, _BESIDE + 1) if n)
        if count >= max(STATIC_SHARE * len(rows), _ALONE * beside) and spread:
            told = (
                f"{count:,} of {counted(len(rows), 'prompt')} have {tokens:,} tokens, and texts of "
                f"{texts[0]:,} to {texts[-1]:,} characters: they are padded or cut"
            )
            return Part("found", told, _OWN_LENGTH)
    return Part(
        "ok",
        f"{counted(len(rows), 'prompt')} have "
        f"{counted(len({row.prompt_tokens for row in rows}), 'length')}, up to {longest(log):,} "
        "tokens",
    )


def _characters(row: Row) -> int:
    texts = (row.prompt, row.system_prompt, row.history, row.tools)
    return sum(len(text) for text in texts if text)


def longest(log: Log) -> int:
    """Return the longest prompt, in tokens."""
    return max((row.prompt_tokens or 0 for row in log.rows), default=0)


def _usual(log: Log) -> int:
    lengths = sorted(row.prompt_tokens for row in log.rows if row.prompt_tokens)
    return lengths[math.ceil(_TYPICAL * len(lengths)) - 1] if lengths else 0


async def look_at_host(
    host: ModelHost, model: str, lengths: Sequence[Length], log: Log | None
) -> Part:
    """Look whether prompts keep their own length, and are found again at it.

    Args:
        host: The host.
        model: A served model.
        lengths: Prompts of several sizes, as tokenised and as served.
        log: Requests, whose lengths have to fit; None: not given.

    Raises:
        HostUnavailable: No answer.
        RequestRefused: The host refuses the prompts.
    """
    if len({one.prompt for one in lengths}) == 1:
        told = f"prompts of {len(lengths)} lengths are all served as {lengths[0].prompt:,} tokens"
        return Part("found", told, _OWN_LENGTH)
    size = cache_size(await host.metrics())
    again = await _again(host, model, size)
    if not again.cached_tokens:
        told = f"a prompt of {again.prompt_tokens:,} tokens is not found again at once"
        return Part("found", told, _CACHE_ON)
    context = (await served_models(host))[model].context
    if context and log and (longer := sum((row.prompt_tokens or 0) > context for row in log.rows)):
        told = f"{counted(longer, 'logged prompt')} are longer than the context of {context:,}"
        return Part("found", told, _OWN_LENGTH)
    told = (
        f"each prompt keeps its own length; of {again.prompt_tokens:,} tokens "
        f"{again.cached_tokens:,} are found again, in blocks of {size.block}"
    )
    return Part("ok", f"{told}{_capacity(size, context, log)}")


async def _again(host: ModelHost, model: str, size: CacheSize) -> ChatResult:
    """Return the second answer to one prompt of several blocks."""
    text = " ".join([uuid.uuid4().hex, *(f"part {n}" for n in range(2 * size.block))])
    chat = Chat(Head(model, text), "Go on.", headers=own("doctor"))
    await host.chat(chat)
    return await host.chat(chat)


def _capacity(size: CacheSize, context: int | None, log: Log | None) -> str:
    """Say how many requests the cache holds at their own length, and reserved at the longest."""
    usual = _usual(log) if log else 0
    if not size.tokens or not context or not usual:
        return ""
    own_length = -(-usual // size.block) * size.block
    return (
        f"; {size.tokens:,} tokens hold {size.tokens // context:,} requests reserved at the "
        f"longest, {size.tokens // own_length:,} at the length of {usual:,} that "
        f"{_TYPICAL:.0%} keep to"
    )
