"""The changes before a rise of traffic or losses: plans, placements, drop rules, ladders, rates."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import timedelta
from math import log
from typing import Final

from algorithms.vocabulary import Floats
from controlplane.alerts.measures import AlertMeasure
from controlplane.explain.causes.effects import ChangeEffect, cause_of, common_cause
from controlplane.explain.causes.evidence import Evidence
from controlplane.explain.change import ChangeKind
from controlplane.explain.changes import changes_of_cluster

# Traffic and losses follow a change within this time.
_FOLLOWS: Final = timedelta(minutes=2)
_BEFORE: Final = timedelta(seconds=30)
# Growth by a smaller factor is not a change.
_LEAST: Final = 1.05
# A part of the input so small is none: losses begin from it.
_NO_LOSS: Final = 0.01
_MOVES: Final = (ChangeKind.PLAN, ChangeKind.PLACEMENT)
_LOSSES: Final = (ChangeKind.DROP_RULE, ChangeKind.LADDER)


def flow_effects(
    evidence: Evidence, measures: Collection[str]
) -> Iterator[tuple[ChangeEffect, float]]:
    """Yield the changes with the growth of the traffic or losses that began with each."""
    series = evidence.observed.series
    if AlertMeasure.REPLICATION in measures:
        yield from _effects(evidence, series["rf"], _MOVES)
    if AlertMeasure.KEPT in measures:
        yield from _effects(evidence, 1 - series["kept"] + _NO_LOSS, _LOSSES)


def _effects(
    evidence: Evidence, values: Floats, kinds: Collection[ChangeKind]
) -> Iterator[tuple[ChangeEffect, float]]:
    """Yield the changes of these kinds with which the values rose, or the rates of streams."""
    shift = evidence.observed.shift_of(values)
    if shift.time is None or shift.after < _LEAST * shift.before or shift.before <= 0:
        return
    growth = log(shift.after / shift.before)
    start, stop = shift.time - _FOLLOWS, shift.time + _BEFORE
    near = [
        change for change in changes_of_cluster(evidence.versions)
        if change.kind in kinds and start <= change.time <= stop
    ]  # fmt: skip
    causes = [cause_of(change, evidence.observed.stream_names) for change in near]
    if not causes:
        of_all = common_cause(evidence.rises)
        causes = [of_all] if of_all is not None and start <= (of_all.time or stop) <= stop else []
    for cause in causes:
        changed = replace(cause, before=shift.before, after=shift.after) if near else cause
        yield ChangeEffect(changed, factor=shift.after / shift.before), growth / len(causes)
