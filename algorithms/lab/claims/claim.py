"""Claims of papers about their figures, with checks that decide them from the table of a run.

A claim holds if its check holds for the means over the seeds and, where the check compares series
or ends of a curve, for each seed alone. A run that lacks a series, or has too few values of x,
decides nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from algorithms.lab.tables import Table, summarise


class Outcome(StrEnum):
    """The result of the check of a claim on one table."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNTESTED = "not testable"


@dataclass(frozen=True)
class Finding:
    """An outcome with its evidence: the figures that decided it, or what the run lacks."""

    outcome: Outcome
    evidence: str


class Results:
    """The table of one run of an experiment whose swept parameter is the column `x`.

    `title`: returns what evidence calls a series.
    """

    def __init__(self, table: Table, x: str, title: Callable[[str], str] = str) -> None:
        self.table = table
        self.x = x
        self.title = title

    def curve(self, series: str, y: str, seed: int | None = None) -> dict[float, float]:
        """Return y by x: its mean over the seeds, or its value for one seed."""
        rows = tuple(
            row for row in self.table.rows if row[1] == series and (seed is None or row[2] == seed)
        )
        means = summarise(Table(self.table.columns, rows), self.x, y).records()
        return {
            float(x): float(mean)
            for x, mean in ((row[self.x], row["mean"]) for row in means)
            if isinstance(mean, int | float) and isinstance(x, int | float)
        }

    def seeds(self) -> list[int]:
        """Return the seeds of the run, ascending."""
        return sorted({row[2] for row in self.table.rows if isinstance(row[2], int)})

    def has(self, *series: str) -> bool:
        """Return True if the run compared all of these series."""
        return set(series) <= set(self.table.column("series"))


class Check(Protocol):
    """A rule that decides a claim from results."""

    def __call__(self, results: Results) -> Finding:
        """Return the outcome and its evidence."""


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, in Weir's words.

    `source`: figure or section. `entry`: how the row of docs/papers.md with the measured figures
    begins, "" for claims of ours.
    """

    source: str
    text: str
    check: Check
    entry: str = ""


@dataclass(frozen=True)
class Decided:
    """A claim with its finding on one run."""

    claim: Claim
    finding: Finding


def decide(
    claims: Sequence[Claim], table: Table, x: str, title: Callable[[str], str] = str
) -> tuple[Decided, ...]:
    """Return the claims of an experiment with their findings on a table.

    `title`: returns what evidence calls a series.
    """
    results = Results(table, x, title)
    return tuple(Decided(claim, claim.check(results)) for claim in claims)
