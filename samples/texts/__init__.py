"""Reads the text tables beside it: tenants with their heads, and the words all tenants share."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

TENANTS = ("acme-bank", "codeforge", "lanting-shop", "nordwind-travel", "hearth-home")


@cache
def table(name: str) -> dict[str, Any]:
    """Return the table of that name, for instance `acme-bank.en`."""
    text = files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


@dataclass(frozen=True)
class Intent:
    """One kind of question: where in the application it is asked, when, and by whom.

    Attributes:
        area: part of the application; chooses the head's section and the adapter.
        season: key of `parameters.SEASONS`.
        incident: whether an incident can bring a burst of it.
        segment: user segment that asks it more than others.
    """

    area: str
    season: str
    incident: bool = False
    segment: str | None = None


@dataclass(frozen=True)
class Experiment:
    """An A/B test of system prompts, from day to day (both counted from 1, inclusive)."""

    days: tuple[int, int]
    arms: dict[str, dict[str, Any]]
    winner: str | None


@dataclass(frozen=True)
class Tenant:
    """What one tenant's application sends besides the question."""

    name: str
    model_revision: str
    segments: dict[str, float]
    locales: dict[str, float]
    params: dict[str, Any]
    adapters: dict[str, str]
    intents: dict[str, Intent]
    base: str
    areas: dict[str, str]
    locale_line: str
    tools: list[dict[str, Any]]
    experiment: Experiment | None = None
    release: dict[str, Any] | None = None
    revision_release: bool = False
    answer_cache: bool = False
    clock_areas: tuple[str, ...] = field(default=())

    def arm_text(self, arm: str | None, day: int) -> str:
        """Return what the arm (or, after the test, its winner) adds to the head on that day."""
        test = self.experiment
        if test is None:
            return ""
        if arm is None and day > test.days[1]:
            arm = test.winner
        return str(test.arms[arm]["text"]) if arm else ""

    def head(self, area: str, locale: str, arm: str | None, day: int, clock: str) -> str:
        """Return the system prompt: shared policy first, what varies after it.

        Args:
            area: part of the application.
            locale: language tag of the conversation.
            arm: arm of a running A/B test.
            day: day of the log, from 1.
            clock: time of the request, which the areas with a clock put at the very front.
        """
        base = self.base
        if self.release and day >= self.release["day"]:
            base = base.replace(self.release["old"], self.release["new"])
        language = table("common")["languages"][locale]
        parts = [base, self.areas[area], self.locale_line.format(language=language)]
        if extra := self.arm_text(arm, day):
            parts.append(extra)
        if area in self.clock_areas:
            parts.insert(0, f"Current time: {clock}")
        return "\n".join(part.strip() for part in parts)


@cache
def tenant(name: str) -> Tenant:
    """Return a tenant as its table describes it."""
    raw = table(name)
    test = raw.get("experiment")
    return Tenant(
        name=name,
        model_revision=raw["model_revision"],
        segments=raw["segments"],
        locales=raw["locales"],
        params=raw["params"],
        adapters=raw["adapters"],
        intents={k: Intent(**v) for k, v in raw["intents"].items()},
        base=raw["head"]["base"],
        areas=raw["head"]["areas"],
        locale_line=raw["head"]["locale"],
        tools=raw["tools"],
        experiment=test and Experiment(tuple(test["days"]), test["arms"], test["winner"]),
        release=raw.get("release"),
        revision_release=raw.get("revision_release", False),
        answer_cache=raw.get("answer_cache", False),
        clock_areas=tuple(raw.get("clock_areas", ())),
    )
