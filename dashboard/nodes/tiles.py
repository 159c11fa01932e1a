"""Tiles of a node: the mean over five minutes, its trend, and its limit."""

from typing import Final

from controlplane import numbers
from controlplane.explain.node_report import NodeReport, NodeTile
from controlplane.explain.units import ValueUnit, quantity
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


def tile_rows(report: NodeReport) -> list[Tile]:
    """Return the tiles of a report."""
    return [_row(report, tile) for tile in report.tiles]


def _row(report: NodeReport, tile: NodeTile) -> Tile:
    number, unit = number_and_unit(tile.value, tile.unit)
    if tile.value is not None and tile.unit is ValueUnit.RATE:
        number, unit = numbers.compact(round(tile.value)), "/s"
    grade = str(tile.grade) if tile.grade in (Grade.WARN, Grade.BAD) else ""
    return Tile(
        _TITLES[tile.name], number, unit, _trend(report, tile), _note(tile), tile.value,
        tile.limit, grade=grade, link=f"#{_TARGETS.get(tile.name, 'tasks')}", name=tile.name,
    )  # fmt: skip


def _trend(report: NodeReport, tile: NodeTile) -> str:
    """Return the change against the five minutes before."""
    if tile.name == "queries":
        total = next((f.total for f in report.explanation.facts if f.name == "queries"), None)
        return "" if total is None else f"of {total:,.0f} in the cluster"
    if tile.value is None or tile.before is None:
        return ""
    change = tile.value - tile.before
    if abs(change) <= 0.005 * max(abs(tile.value), abs(tile.before)):
        return "no change in 5 min"
    arrow = "\N{UPWARDS ARROW}" if change > 0 else "\N{DOWNWARDS ARROW}"
    return f"{arrow} {quantity(abs(change), tile.unit)} in 5 min"


def _note(tile: NodeTile) -> str:
    text = _LIMITS.get(tile.name, "")
    return text.format("" if tile.limit is None else quantity(tile.limit, tile.unit))
