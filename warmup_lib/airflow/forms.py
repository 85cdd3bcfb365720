"""The form of a launch: its fields, and what its answers mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param

from warmup_lib.airflow.settings import enabled_layers, target_names
from warmup_lib.config import Config


def launch_form(config: Config) -> dict[str, Param]:
    """Return the launch form's fields; an empty field means all.

    The embedded stack's targets have no names that last: there is no choice among them.
    """
    names = target_names(config)
    targets = {"targets": _choice("Targets", names, "Places to warm; empty: all.")}
    return {
        "model": Param(
            None,
            type=["null", "string"],
            title="Model",
            description="Name in the log; empty: every model.",
        ),
        **(targets if names else {}),
        "tenants": _choice("Tenants", [], "One a line; empty: every tenant."),
        "layers": _choice("Layers", enabled_layers(config), "Layers to warm; empty: all."),
        "day": Param(
            None,
            type=["null", "string"],
            format="date",
            title="Last log day",
            description="Demand is taken from the days up to this one; empty: yesterday.",
        ),
        "dry_run": Param(
            False, type="boolean", title="Plan only", description="Write the plan, warm nothing."
        ),
    }


def plans_only(context: Mapping[str, Any]) -> bool:
    """Return whether the form asks for a plan without warming."""
    return bool(context["params"]["dry_run"])


def _choice(title: str, known: list[str], description: str) -> Param:
    # Airflow's form shows a list with `examples` as a multi-select, one without as lines of text;
    # only the first can also be checked.
    shown = {"examples": known, "items": {"type": "string", "enum": known}} if known else {}
    return Param([], type=["array", "null"], title=title, description=description, **shown)
