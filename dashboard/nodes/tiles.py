"""Tiles of a node: the figures of its explanation, their trends, and their limits."""

from typing import Final

from controlplane.explain import Explanation
from controlplane.explain.units import quantity
from controlplane.explain.values import Fact
from controlplane.numbers import change
from controlplane.policies.grades import Grade
from dashboard.frame.tile import Tile, number_and_unit

_TITLES: Final = {
    "load": "Load",
    "backlog": "Backlog",
    "latency": "Latency p95",
    "busy": "Processor time",
    "state": "State",
    "queries": "Queries",
}
# The part of the page that a tile leads to; the others lead to the tasks.
_TARGETS: Final = {name: f"chart-{name}" for name in ("load", "backlog", "latency", "state")}
_LIMITS: Final = {
    "load": "limit {}",
    "backlog": "limit 1 s of work",
    "latency": "limit {}",
    "busy": "of one processor",
}


def tile_rows(explanation: Explanation) -> list[Tile]:
    """Return the tiles of an explained node."""
    return [_row(fact) for fact in explanation.facts]


def _row(fact: Fact) -> Tile:
    number, unit = number_and_unit(fact.value, fact.unit)
    limit = "" if fact.limit is None else quantity(fact.limit, fact.unit)
    return Tile(
        _TITLES[fact.name], number, unit, _trend(fact), _LIMITS.get(fact.name, "").format(limit),
        fact.value, fact.limit,
        grade=str(fact.grade) if fact.grade in (Grade.WARN, Grade.BAD) else "",
        link=f"#{_TARGETS.get(fact.name, 'tasks')}", name=fact.name,
    )  # fmt: skip


def _trend(fact: Fact) -> str:
    """Return the change against the five minutes before."""
    if fact.total is not None:
        return f"of {fact.total:,.0f} in the cluster"
    if fact.value is None or fact.before is None:
        return ""
    return f"{change(fact.value, fact.before, fact.unit)} in 5 min"
