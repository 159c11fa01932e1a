"""Rows of the watch loops' decisions, with number, limit and age."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from controlplane import numbers
from controlplane.alerts.statuses import DECIDED
from controlplane.models import Cluster, Decision
from controlplane.numbers import counted, lowered
from controlplane.policies.settings import PolicySettings
from controlplane.watch import CODES, all_loops, sample_age_s, situation_of
from controlplane.watch.codes import is_calm
from controlplane.watch.decision_log import last_decisions
from dashboard import thresholds
from dashboard.frame.headline import Headline

_EVALUATED: Final = "Monitors check every ten seconds while worker and beat run."
# The reasons whose number is the gain of a plan, and whose limit is the least one.
_GAINS: Final = ("recommended", "acted", "no_gain")
_ABOUT = {loop.name: loop.about for loop in all_loops()}
_TITLES = {loop.name: loop.title for loop in all_loops()}


@dataclass(frozen=True)
class DecisionRow:
    """A displayed decision; `row`: None for a loop without decisions.

    `next`: when the loop may decide again, None if it is not shown.
    """

    loop: str
    loop_about: str
    row: Decision | None
    about: str
    grade: str
    number: str
    limit: str
    next: datetime | None = None

    @property
    def is_quiet(self) -> bool:
        """Return True for a reason without a problem."""
        return self.row is None or is_calm(self.row.code)

    @property
    def code(self) -> str:
        """Return the label of the reason."""
        if self.row is None:
            return "not yet"
        name = self.row.code
        code = CODES.get(name)
        return code.title if code else name.replace("_", " ")


def decision_row(row: Decision) -> DecisionRow:
    """Return the row of a decision."""
    code = CODES.get(row.code)
    number = figure_text(row.number, row.unit)
    # The limit of a figure that was not read has no unit.
    limit = figure_text(row.limit, row.unit) if row.unit or row.number is not None else ""
    if row.code in _GAINS and number:
        number, limit = f"gain {number}", f"at least {limit}" if limit else ""
    elif row.limit is None:
        # There is nothing to measure, for the reason in the text.
        number = ""
    elif row.number == row.limit == 0:
        number, limit = "none", ""
    elif limit:
        limit = f"limit {limit}"
    return DecisionRow(
        loop=_TITLES.get(row.loop) or row.loop,
        loop_about=_ABOUT.get(row.loop, ""),
        row=row,
        about=code.about if code else "",
        grade=code.grade if code else thresholds.UNKNOWN,
        number=number,
        limit=limit,
    )


def decisions_headline(last: Sequence[DecisionRow]) -> Headline:
    """Return the worst of the last decisions of the loops in words."""
    decided = [row for row in last if row.row is not None]
    if not decided:
        return Headline("No monitor has decided yet", _EVALUATED)
    for grade in (thresholds.BAD, thresholds.WARN):
        worst = [row for row in decided if row.grade == grade]
        if worst:
            names = ", ".join(row.loop for row in worst)
            verb = "needs" if len(worst) == 1 else "need"
            texts = ". ".join(row.row.text for row in worst if row.row is not None)
            of = f"{len(worst)} of {counted(len(decided), 'monitors')}"
            return Headline(f"{of} {verb} attention: {names}", f"{texts}.", grade)
    unknown = [row for row in decided if row.grade == thresholds.UNKNOWN]
    first = unknown[0].row if unknown else None
    if len(unknown) == len(decided):
        return Headline(_by_reason(unknown), first.text if first is not None else "")
    satisfied = len(decided) - len(unknown)
    number = f"{satisfied} of {len(decided)}" if unknown else f"All {satisfied}"
    return Headline(
        f"{number} monitors find nothing to do",
        _by_reason(unknown) if unknown else "",
        thresholds.GOOD,
    )


def _by_reason(rows: Sequence[DecisionRow]) -> str:
    """Return the loops by their reason, as in "Cool-down: skew; in the dead band: load"."""
    loops: dict[str, list[str]] = {}
    for row in rows:
        loops.setdefault(row.code, []).append(row.loop)
    first, *others = (f"{code}: {', '.join(names)}" for code, names in loops.items())
    return "; ".join([first, *map(lowered, others)])


def why(cluster: Cluster, policy: PolicySettings, now: datetime) -> list[DecisionRow]:
    """Return the row of the last decision of each loop, with the time of its next check.

    A decision that does not count for the status of the cluster any more has no level.
    """
    situation, rows = situation_of(cluster, now, sample_age_s(cluster, now)), []
    for loop, last in last_decisions(cluster).items():
        if last is None:
            name = _TITLES[loop] or loop
            rows.append(DecisionRow(name, _ABOUT[loop], None, "", thresholds.UNKNOWN, "", ""))
            continue
        row = decision_row(last)
        grade = thresholds.UNKNOWN if now - last.last_at > DECIDED else row.grade
        check = situation.next_check(last.code, last.last_at, policy)
        rows.append(replace(row, next=check, grade=grade))
    return rows


def figure_text(value: float | None, unit: str) -> str:
    """Return a number with its unit, "" for None."""
    return "" if value is None else numbers.value_text(value, unit)
