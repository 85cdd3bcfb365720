"""The shipped source: prompts from our own grammar, so that a clone needs nothing else."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from samples import documents, parameters, texts
from samples.grammar import COMMON_FIRST, Filling
from samples.pool import Prompt, pick, weighted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np

    from samples.texts import Tenant

TRIES = 12
"""Draws a wanted prompt, before a small grammar is taken to be exhausted."""


class Shipped:
    """Texts of our own writing; documents from the documentation of installed packages."""

    name = "shipped"

    def tenants(self) -> Sequence[Tenant]:
        """Return the five tenants."""
        return [texts.tenant(name) for name in texts.TENANTS]

    def pool(self, tenant: Tenant, size: int, rng: np.random.Generator) -> list[Prompt]:
        """Return up to `size` distinct prompts, the suggested questions first."""
        blocks = _blocks(tenant)
        weights = [weight for *_, weight in blocks]
        found: dict[str, Prompt] = {}
        # weighted random order: common languages and intents lead, without a fixed ranking
        keys = [rng.random() ** (1 / w) for w in weights]
        for i in sorted(range(len(blocks)), key=lambda i: -keys[i]):
            locale, intent, _ = blocks[i]
            prompt = _prompt(tenant, locale, intent, rng, button=True)
            found[prompt.text] = prompt
        for _ in range(TRIES * size):
            if len(found) >= size:
                break
            locale, intent, _ = blocks[weighted(weights, rng)]
            prompt = _prompt(tenant, locale, intent, rng, button=False)
            found.setdefault(prompt.text, prompt)
        return list(found.values())[:size]

    def documents(self) -> Mapping[str, Iterable[tuple[str, list[str]]]]:
        """Return the household help pages and, for programmers, those of installed packages."""
        household = texts.table("hearth-home.docs").items()
        return {
            "hearth-home": [(f"hearth-home.{intent}", chunks) for intent, chunks in household],
            "codeforge": documents.from_packages(_package_pages()),
        }


def _package_pages() -> list[str]:
    pages = {
        page
        for locale in texts.tenant("codeforge").locales
        for topic in _slots("codeforge", locale)["topic"]
        for page in topic["pages"]
    }
    pages.update(page for s in texts.table("snippets")["python"] for page in s.get("pages", ()))
    return sorted(pages)


def _blocks(tenant: Tenant) -> list[tuple[str, str, float]]:
    """Return (locale, intent, weight) of every block of text the tenant has."""
    intents = list(tenant.intents)
    skew = {n: (i + 1) ** -parameters.INTENT_EXPONENT for i, n in enumerate(intents)}
    return [
        (locale, intent, share * skew[intent])
        for locale, share in tenant.locales.items()
        for intent in texts.table(f"{tenant.name}.{locale}")["intents"]
    ]


def _slots(tenant: str, locale: str) -> dict[str, list[Any]]:
    slots: dict[str, list[Any]] = texts.table(f"{tenant}.{locale}")["slots"]
    if tenant != "codeforge":
        return slots
    snippets = texts.table("snippets")
    code = [
        {"lang": label, **snippet}
        for key, label in (("python", "Python"), ("javascript", "JavaScript"), ("go", "Go"))
        for snippet in snippets[key]
    ]
    # interleaved, so that the preference for the first values favours no language
    return {**slots, "snippet": code[::2] + code[1::2]}


def _prompt(
    tenant: Tenant, locale: str, intent: str, rng: np.random.Generator, *, button: bool
) -> Prompt:
    book = texts.table(f"{tenant.name}.{locale}")
    block = book["intents"][intent]
    names = texts.table("snippets")["names"] if tenant.name == "codeforge" else {}
    filling = Filling(_slots(tenant.name, locale), book.get("plain", {}), names, rng)
    template = block["ask"][0] if button else pick(block["ask"][1:], rng, COMMON_FIRST)
    text = filling.ask(template)
    return Prompt(
        text=text,
        locale=locale,
        intent=intent,
        answer=filling.answer(pick(block["answer"], rng)),
        follow=tuple((filling.answer(q), filling.answer(a)) for q, a in block["follow"]),
        chunk_ids=_chunks(tenant.name, intent, text, filling.pages),
        button=button,
    )


def _chunks(tenant: str, intent: str, text: str, pages: list[str]) -> tuple[str, ...]:
    """Return three chunks in an order that the wording decides, as a vector search would."""
    turn = zlib.crc32(text.encode()) % 3
    if tenant == "hearth-home":
        return tuple(f"hearth-home.{intent}#{(turn + i) % 3 + 1}" for i in range(3))
    if not pages:
        return ()
    first, second = pages[0], pages[-1]
    orders = (
        (f"{first}#1", f"{first}#2", f"{second}#1"),
        (f"{first}#2", f"{first}#1", f"{second}#2"),
        (f"{first}#1", f"{second}#1", f"{first}#3"),
    )
    return orders[turn]
