"""Rows and form of drop rules."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from controlplane.catalog.drop_rules import drop_rules_of, moment_of
from controlplane.catalog.queries import computed_by
from controlplane.errors import Invalid
from controlplane.models import Drop, Query, Stream
from controlplane.topology.drop_rules import DropSpec, windows_text
from dashboard.forms import finite, optional, read

# The maximum length of the list of queries.
MOST_READERS = 500


@dataclass(frozen=True)
class StepRow:
    """The dropped share from an event time on (None: always)."""

    since: datetime | None
    share: float


@dataclass(frozen=True)
class DropRuleFormRow:
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


def drop_rule_row(drop: Drop) -> DropRuleFormRow:
    """Return the row of a drop rule."""
    rule = drop.value
    steps = tuple(StepRow(moment_of(since), share) for since, share in rule.steps)
    return DropRuleFormRow(
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
    windows = {"window_s": optional(finite), "slide_s": optional(finite), "batch": _batch}
    readers = {"share": _share} | (windows if values.get("kind") == "windows" else {})
    spec = DropSpec(**read({**values, "share": values.get("percent", "")}, **readers))
    if "window_s" in readers and spec.window_s is None:
        return replace(spec, window_s=_own_window(stream, values.get("query", "")))
    return spec


def _share(text: str) -> float:
    return finite(text.removesuffix("%") or "0") / 100


def _batch(text: str) -> int:
    value = finite(text or "1")
    if value != int(value):
        raise ValueError("Together must be a whole number")
    return int(value)


def _own_window(stream: Stream, name: str) -> float:
    running = Query.objects.filter(streams=stream, state=Query.State.RUNNING)
    query = running.filter(name=name).first()
    if query is None:
        raise Invalid({"window_s": ["Enter the length of the windows"]})
    return computed_by(query).window.size_ms / 1000


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.15g}" if ms else ""
