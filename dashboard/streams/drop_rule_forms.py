"""Rows and form of drop rules."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controlplane.catalog.drop_rules import drop_rules_of, moment_of
from controlplane.catalog.queries import computed_by
from controlplane.errors import Fields, Invalid
from controlplane.models import Drop, Query, Stream
from controlplane.topology.drop_rules import DropSpec, windows_text
from dashboard.forms import number

# The maximum length of the list of queries.
MOST_READERS = 500


@dataclass(frozen=True)
class StepRow:
    """The dropped share from an event time on (None: always)."""

    since: datetime | None
    share: float


@dataclass(frozen=True)
class DropRuleRow:
    """A drop rule in its row and dialog; rules of windows have steps."""

    drop: Drop
    share: float
    what: str
    steps: tuple[StepRow, ...]
    window_s: str
    slide_s: str
    batch: int

    @property
    def lifting(self) -> bool:
        """Return True if the rule ends with a future window, or has ended."""
        return self.share == 0

    @property
    def percent(self) -> str:
        """Return the share as the form's text."""
        shares = [step.share for step in self.steps if step.share] or [self.share]
        return f"{100 * shares[-1]:.4g}"


def drop_rule_row(drop: Drop) -> DropRuleRow:
    """Return the row of a drop rule."""
    rule = drop.value
    steps = tuple(StepRow(moment_of(since), share) for since, share in rule.steps)
    return DropRuleRow(
        drop=drop,
        share=rule.steps[-1][1],
        what=windows_text(rule),
        steps=steps if rule.window_ms else (),
        window_s=_seconds(rule.window_ms),
        slide_s=_seconds(rule.slide_ms),
        batch=rule.batch,
    )


def drop_rules_context(stream: Stream) -> dict[str, Any]:
    """Return the context of a stream's drop rules: rows, and selectable queries."""
    running = Query.objects.filter(streams=stream, state=Query.State.RUNNING).order_by("name")
    readers = running.values_list("name", "window_s")[:MOST_READERS]
    return {
        "drops": [drop_rule_row(drop) for drop in drop_rules_of(stream)],
        "readers": [(name, f"{window_s:g} s windows") for name, window_s in readers],
    }


def drop_spec(stream: Stream, values: Mapping[str, str]) -> DropSpec:
    """Return the drop rule of a form; its window can be that of the query.

    Raises `Invalid` for invalid numbers.
    """
    faults: Fields = {}
    share = _number(values, "percent", "share", faults) or 0.0
    if values.get("kind") != "windows":
        return _unless(faults, DropSpec(share / 100))
    window_s = _number(values, "window_s", "window_s", faults)
    slide_s = _number(values, "slide_s", "slide_s", faults)
    batch = _number(values, "batch", "batch", faults) or 1.0
    if window_s is None and not faults:
        window_s = _own_window(stream, values.get("query", ""))
    if batch != int(batch):
        faults["batch"] = ["Together must be a whole number"]
    return _unless(faults, DropSpec(share / 100, window_s, slide_s, int(batch)))


def _own_window(stream: Stream, name: str) -> float:
    running = Query.objects.filter(streams=stream, state=Query.State.RUNNING)
    query = running.filter(name=name).first()
    if query is None:
        raise Invalid({"window_s": ["Enter the length of the windows"]})
    return computed_by(query).window.size_ms / 1000


def _number(values: Mapping[str, str], field: str, name: str, faults: Fields) -> float | None:
    """Return the number in a field, None if it is empty."""
    text = values.get(field, "").strip().removesuffix("%")
    value = number(text) if text else None
    if value is not None and not math.isfinite(value):
        faults[name] = [f"{text[:40]} is not a number"]
        return None
    return value


def _unless(faults: Fields, spec: DropSpec) -> DropSpec:
    if faults:
        raise Invalid(faults)
    return spec


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.15g}" if ms else ""
