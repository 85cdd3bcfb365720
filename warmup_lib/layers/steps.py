"""Warm-up generations of given prompt lengths on each rank of a host: how many of them worked."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from warmup_lib.errors import HostUnavailable, InputDataError
from warmup_lib.layers.base import Context, PlanItem
from warmup_lib.targets.chat import Chat, Head, RequestRefused, own
from warmup_lib.targets.host import ModelHost
from warmup_lib.targets.models import RANK_HEADER, Served, engines
from warmup_lib.targets.tokens import head_tokens

_ANSWER_TOKENS = 2
"""The prompt gives the first token: only the second one takes the way of all that follow."""
_ENDS = 13
"""Tokens of a prompt's first word, which no other has, and of the template's end, about."""
_SLACK = 32
"""Tokens by which our count of a prompt may be wrong."""


@dataclass
class Done:
    """What the generations on one rank came to.

    Attributes:
        worked: How many were answered with a token at least.
        tokens: Prompt tokens of these.
        reasons: Why others were not, each once.
    """

    worked: int = 0
    tokens: int = 0
    reasons: list[str] = field(default_factory=list)

    def failed(self, reason: str) -> None:
        """Take in why one did not work."""
        if reason not in self.reasons:
            self.reasons.append(reason)


@dataclass(frozen=True)
class Steps:
    """Generations with one model of a host.

    Attributes:
        item: The model's item.
        host: The host.
        ranks: Engines side by side, each with weights and compiled code of its own.
        salted: Prompts may carry a salt.
        around: Tokens that the template puts before the text.
        longest: Longest prompt that the model takes; None: not known.
        plan_id: Marks our own traffic.
    """

    item: PlanItem
    host: ModelHost
    ranks: int
    salted: bool
    around: int
    longest: int | None
    plan_id: str

    @staticmethod
    async def of(item: PlanItem, host: ModelHost, served: Served, context: Context) -> Steps:
        """Ask the host what is needed to send them.

        Raises:
            HostUnavailable: It does not answer.
            RequestRefused: It refuses to render a prompt.
        """
        can = await host.capabilities()
        around = 0
        if can.render or can.tokenize:
            around = len(await head_tokens(host, Head(item.model, None)))
        longest = None if served.context is None else served.context - _ANSWER_TOKENS - _SLACK
        ranks = await engines(host)
        return Steps(item, host, ranks, can.salt, around, longest, context.plan_id)

    async def on(self, rank: int, lengths: Sequence[int]) -> Done:
        """Send one generation after the other to a rank.

        Args:
            rank: The rank.
            lengths: Prompt length of each, in tokens.

        Raises:
            HostUnavailable: The host is down. Where it is up, a generation that it leaves
                unanswered is one that did not work.
        """
        done = Done()
        for tokens in lengths:
            try:
                answer = await self.host.chat(self._chat(rank, tokens))
            except HostUnavailable as error:
                await self.host.ready()
                done.failed(error.reason)
            except (RequestRefused, InputDataError) as error:
                done.failed(str(error))
            else:
                if answer.completion_tokens or answer.text:
                    done.worked += 1
                    done.tokens += answer.prompt_tokens
                else:
                    done.failed("an answer without a token")
        return done

    def _chat(self, rank: int, tokens: int) -> Chat:
        """Return a prompt of so many tokens that no cache knows and that nobody will send again."""
        tokens = tokens if self.longest is None else min(tokens, self.longest)
        once = uuid.uuid4().hex
        words = ["word"] * max(1, tokens - self.around - _ENDS)
        headers = own(self.plan_id, self.item.item_id)
        if self.ranks > 1:
            headers[RANK_HEADER] = str(rank)
        return Chat(
            Head(self.item.model, None),
            " ".join([once[:8], *words]),
            max_tokens=_ANSWER_TOKENS,
            salt=once if self.salted else None,
            headers=headers,
        )
