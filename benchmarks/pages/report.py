"""Figures beside the values that they should reach, as a table."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A measured figure; `most`: what it should reach at most, in the same unit."""

    name: str
    value: float
    most: float
    unit: str
    note: str = ""

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Return the cells of the table."""
        reached = "" if self.value <= self.most else "  MISSED"
        measured = f"{self.value:,.4g} {self.unit}{reached}"
        return self.name, measured, f"{self.most:,.4g} {self.unit}", self.note


def announce(figures: Sequence[Figure]) -> list[Figure]:
    """Print figures as soon as they are measured, and return them."""
    for figure in figures:
        print("  ".join(figure.row), flush=True)
    return list(figures)


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as lines of text with aligned columns."""
    rows = [("figure", "measured", "at most", ""), *(figure.row for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    )
