"""A closer look at the entries of a plan than that they are there: what layers call an audit."""

from __future__ import annotations

from typing import Any

from warmup_lib.errors import TargetUnavailable
from warmup_lib.verify.measuring import Subject


async def audit_all(subject: Subject, down: dict[str, str]) -> dict[str, Any]:
    """Return what the layers that audit found, by layer and target.

    Args:
        subject: What is verified, and where.
        down: Targets that did not answer, with the reason; more are added.
    """
    found: dict[str, Any] = {}
    for layer in subject.planned:
        items = [item for item in subject.items if item.layer == layer.name]
        for target in subject.homes(layer):
            if target.name in down:
                continue
            try:
                counts = await layer.audit(items, target, subject.context)
            except TargetUnavailable as error:
                down[target.name] = error.reason
                continue
            if counts:
                found.setdefault(layer.name, {})[target.name] = dict(counts)
    return found


def notes(audits: dict[str, Any]) -> list[str]:
    """Return sentences on what an audit found wrong."""
    return [
        f"{counts['lists_checked'] - counts['lists_equal']} of {counts['lists_checked']} chunk "
        f"lists on '{target}' are not what a fresh search gives: warm them again"
        for of_layer in audits.values()
        for target, counts in of_layer.items()
        if counts.get("lists_equal", 0) < counts.get("lists_checked", 0)
    ]
