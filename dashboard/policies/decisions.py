"""Rows of the watch loops' decisions, with number, limit and age."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from controlplane.models import Cluster, Decision
from controlplane.watch import ALL_LOOPS, CODES
from controlplane.watch.decision_folding import FoldedDecision
from controlplane.watch.decision_log import last_decisions
from dashboard import numbers, thresholds
from dashboard.frame.headline import Headline
from dashboard.numbers import lowered

_EVALUATED: Final = "Loops are evaluated every ten seconds while worker and beat run."
_ABOUT = {loop.name: loop.about for loop in ALL_LOOPS}


@dataclass(frozen=True)
class DecisionRow:
    """A displayed decision; `row`: None for a loop without decisions.

    `repeats`: how often the loop decided so, from `first` to `last`.
    """

    loop: str
    loop_about: str
    row: Decision | None
    about: str
    grade: str
    number: str
    limit: str
    repeats: int = 0
    first: datetime | None = None
    last: datetime | None = None

    @property
    def code(self) -> str:
        """Return the label of the reason."""
        if self.row is None:
            return "not yet"
        code = CODES.get(self.row.code)
        return code.title if code else self.row.code.replace("_", " ")


def decision_row(row: Decision) -> DecisionRow:
    """Return the row of a decision."""
    code = CODES.get(row.code)
    return DecisionRow(
        loop=row.loop,
        loop_about=_ABOUT.get(row.loop, ""),
        row=row,
        about=code.about if code else "",
        grade=code.grade if code else thresholds.UNKNOWN,
        number=figure_text(row.number, row.unit),
        limit=figure_text(row.limit, row.unit),
    )


def single_row(row: Decision) -> DecisionRow:
    """Return the row of a decision with its equal successors."""
    return replace(decision_row(row), repeats=row.count, first=row.first_at, last=row.last_at)


def folded_row(folded: FoldedDecision) -> DecisionRow:
    """Return the row of folded decisions."""
    shown = decision_row(folded.decision)
    return replace(shown, repeats=folded.repeats, first=folded.first, last=folded.last)


def decisions_headline(last: Sequence[DecisionRow]) -> Headline:
    """Return the worst of the last decisions of the loops in words."""
    decided = [row for row in last if row.row is not None]
    if not decided:
        return Headline("No watch loop has decided yet", _EVALUATED)
    for grade in (thresholds.BAD, thresholds.WARN):
        worst = [row for row in decided if row.grade == grade]
        if worst:
            names = ", ".join(f"{row.loop}: {lowered(row.code)}" for row in worst)
            first = worst[0].row
            return Headline(names, first.text if first is not None else "", grade)
    return Headline(f"All {len(decided)} watch loops find nothing to do", grade=thresholds.GOOD)


def why(cluster: Cluster) -> list[DecisionRow]:
    """Return the row of the last decision of each loop."""
    return [
        decision_row(row)
        if row is not None
        else DecisionRow(loop, _ABOUT[loop], None, "", thresholds.UNKNOWN, "", "")
        for loop, row in last_decisions(cluster).items()
    ]


def figure_text(value: float | None, unit: str) -> str:
    """Return a number with its unit, "" for None."""
    if value is None:
        return ""
    if unit == "share":
        return numbers.percent(value)
    if unit == "ratio":
        return numbers.ratio(value)
    if unit == "ms":
        return numbers.milliseconds(value)
    if unit == "s":
        return numbers.duration(timedelta(seconds=value))
    singular = unit.removesuffix("s") if value == 1 else unit
    return f"{numbers.compact(value)} {singular}".strip()
