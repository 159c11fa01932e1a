"""Summary of a run: a row per value, a column per series."""

from dataclasses import dataclass
from typing import Any

from algorithms.lab.experiments import Axis, Cell, Experiment, Table, series_title, summarise
from controlplane.numbers import MISSING


@dataclass(frozen=True)
class Summary:
    """Means over the seeds; `heads`: titles of series; cells: (mean, deviation) as text."""

    x: Axis
    y: Axis
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def summary(experiment: Experiment, y: Axis, table: Table) -> Summary:
    """Return the summary of one measure."""
    x = experiment.x
    cells = {
        (row[x.name], row["series"]): row for row in summarise(table, x.name, y.name).records()
    }
    values = list(dict.fromkeys(value for value, _ in cells))
    series = list(dict.fromkeys(name for _, name in cells))
    rows = tuple(
        (plain(value), tuple(_cell(cells.get((value, name), {})) for name in series))
        for value in values
    )
    return Summary(
        x, y, tuple(series_title(experiment.planner, experiment.name, str(n)) for n in series), rows
    )


def summary_lines(summary: Summary) -> list[str]:
    """Return the summary as lines of text with aligned columns."""
    lines = [[summary.x.label, *summary.heads]]
    for value, cells in summary.rows:
        lines.append([value, *(" ".join(filter(None, cell)) for cell in cells)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(map(str.rjust, line, widths)) for line in lines]


def plain(value: Cell) -> str:
    """Return a value as text, without an exponent or a trailing point."""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else repr(value)
    return str(value)


def _cell(row: dict[str, Any]) -> tuple[str, str]:
    if row.get("mean") is None:
        return MISSING, ""
    spread = f"± {row['deviation']:.2g}" if row["runs"] > 1 else ""
    return f"{row['mean']:.4g}", spread
