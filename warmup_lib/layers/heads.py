"""Heads on one model host: which it can have, their tokens and salts, and how one is grown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warmup_lib.layers.base import Context, Lookup, Outcome, PlanItem, Status
from warmup_lib.layers.blocks import Blocks, cut
from warmup_lib.layers.salts import salt_for
from warmup_lib.targets.base import Target
from warmup_lib.targets.capabilities import Capabilities
from warmup_lib.targets.chat import WARM_TEXT, Chat, ChatResult, Head, own
from warmup_lib.targets.host import ModelHost, as_host
from warmup_lib.targets.kv import token_bytes
from warmup_lib.targets.tokens import counted, head_tokens, prefill

SHORT = "shorter than one cache block"
NOT_SERVED = "the host does not serve its model"


@dataclass(frozen=True)
class HeadHost:
    """A host with what it serves and can do now, and the run it is used in."""

    host: ModelHost
    served: set[str]
    can: Capabilities
    context: Context

    @staticmethod
    async def of(target: Target, context: Context) -> HeadHost:
        """Ask a host.

        Raises:
            HostUnavailable: It does not answer.
        """
        host = as_host(target)
        return HeadHost(host, await host.served(), await host.capabilities(), context)

    def head(self, of: PlanItem | Lookup) -> Head:
        """Return the head of an item or request, its adapter under the name of its weights."""
        return Head(of.model, of.system_prompt, of.tools, self.context.adapter(of.adapter))

    def problem(self, head: Head) -> str | None:
        """Say why this host can't have a head; None: it can."""
        there = self.host.model(head) in self.served
        return None if there else NOT_SERVED

    def salt(self, of: PlanItem | Lookup, once: str = "") -> str | None:
        """Return the salt of an item's or a request's tenant; for `once` see `salt_for`."""
        return salt_for(self.host, self.context, of.tenant, of.adapter, once)

    @property
    def renders(self) -> bool:
        """Whether the host gives token ids, so that heads are cut and counted exactly."""
        return self.can.render or self.can.tokenize

    def whole(self, tokens: int) -> int:
        """Return how many of so many tokens lie in whole blocks: only these are kept."""
        return tokens // self.can.block_size * self.can.block_size

    async def planned(self, head: Head) -> int | None:
        """Return the tokens of a head in whole blocks; None: the host renders no ids.

        Raises:
            HostUnavailable: No answer.
            RequestRefused: The host refuses this head.
            InputDataError: The head's tools are no JSON list.
        """
        if not self.renders:
            return None
        return self.whole(len(await head_tokens(self.host, head)))

    async def whole_of(self, chat: Chat, answer: ChatResult) -> int:
        """Return the same once a request with the head was sent; without ids: at least so many."""
        planned = await self.planned(chat.head)
        if planned is not None:
            return planned
        return self.whole(await counted(self.host, chat.head, chat.user, answer.prompt_tokens))

    async def blocks(self, item: PlanItem) -> Blocks:
        """Return the blocks of an item's head; raises as `planned` does."""
        head = self.head(item)
        place = f"{self.host.model(head)}\0{self.salt(item)}"
        return cut(await head_tokens(self.host, head), self.can.block_size, place)

    async def warm(self, item: PlanItem) -> Outcome:
        """Fill the cache with an item's head.

        Raises:
            HostUnavailable: No answer.
            RequestRefused: The host refuses this head.
            InputDataError: The head's tools are no JSON list.
        """
        if problem := self.problem(self.head(item)):
            return Outcome(item.item_id, "skipped", error=problem)
        if self.renders and self.can.token_prompts:
            return await self._grow(item)
        return await self._send_whole(item)

    async def _grow(self, item: PlanItem) -> Outcome:
        """Grow the head by steps, from where this process knows that it is filled already."""
        head, blocks, kv = self.head(item), await self.blocks(item), self.host.kv
        if not blocks:
            return Outcome(item.item_id, "skipped", error=SHORT)
        tokens = await head_tokens(self.host, head)
        new, ms, reached = 0, 0.0, 0
        async with kv.turns[blocks[0]]:
            filled = sum(block in kv.filled for block in blocks)  # they are its first ones
            reached = filled * self.can.block_size
            for end in self._steps(reached, len(blocks) * self.can.block_size):
                # The last token of a prompt is always computed: one more, and none is of the head.
                one_more = tokens[end] if end < len(tokens) else tokens[0]
                answer = await prefill(
                    self.host,
                    [*tokens[:end], one_more],
                    self.host.model(head),
                    self.salt(item),
                    own(self.context.plan_id, item.item_id),
                )
                cached = answer.cached_tokens
                new += end - (min(cached, end) if cached is not None else min(reached, end))
                ms += answer.total_ms
                reached = end
            kv.filled.update(blocks)
        return await self._outcome(item, new, ms)

    def _steps(self, start: int, whole: int) -> Sequence[int]:
        """Return where the prompts end: one at least, which shows what the host has."""
        step = max(self.can.block_size, self.whole(self.context.config.layers.prefixes.step_tokens))
        return [*range(start + step, whole, step), whole]

    async def _send_whole(self, item: PlanItem) -> Outcome:
        """Send the head with a neutral question, where there is no way to send a part of it."""
        head = self.head(item)
        chat = Chat(
            head,
            WARM_TEXT,
            salt=self.salt(item),
            headers=own(self.context.plan_id, item.item_id),
        )
        if await self.planned(head) == 0:
            return Outcome(item.item_id, "skipped", error=SHORT)
        answer = await self.host.chat(chat)
        whole = await self.whole_of(chat, answer)
        if not whole:
            return Outcome(item.item_id, "skipped", error=SHORT)
        return await self._outcome(
            item, whole - min(answer.cached_tokens or 0, whole), answer.total_ms
        )

    async def _outcome(self, item: PlanItem, new: int, ms: float) -> Outcome:
        size = await token_bytes(self.host, self.host.model(self.head(item)))
        status: Status = "warmed" if new or not self.can.cached_tokens else "already"
        return Outcome(item.item_id, status, tokens=new, bytes=new * size, ms=ms)
