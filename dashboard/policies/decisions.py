"""Rows of the watch loops' decisions, with number, limit and age."""

from dataclasses import dataclass
from datetime import timedelta

from controlplane.models import Cluster, Decision
from controlplane.watch import ALL_LOOPS, CODES
from controlplane.watch.decision_log import last_decisions
from dashboard import numbers, thresholds

_ABOUT = {loop.name: loop.about for loop in ALL_LOOPS}


@dataclass(frozen=True)
class DecisionRow:
    """A displayed decision; `row`: None for a loop without decisions."""

    loop: str
    loop_about: str
    row: Decision | None
    about: str
    grade: str
    number: str
    limit: str

    @property
    def code(self) -> str:
        """Return the reason as text."""
        return self.row.code.replace("_", " ") if self.row else "not yet"


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
