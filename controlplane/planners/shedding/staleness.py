"""Staleness of a ladder: what changed since the snapshot from which it was computed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from controlplane.models import ArmedLadder
from controlplane.planners.shedding.inputs import SheddingInput

MEASURED: Final = "costs that were assumed are measured now"
UNKNOWN: Final = "the snapshot from which it was computed is not stored"


class StaleCode(StrEnum):
    """Why a ladder should be computed again."""

    RATES = "rates"
    COSTS = "costs"
    QUERIES = "queries"
    WEIGHTS = "weights"
    SETTINGS = "settings"
    PROVISIONAL = "provisional"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class StaleReason:
    """A change beyond what is tolerated, as a clause."""

    code: StaleCode
    text: str


@dataclass(frozen=True)
class LadderDrift:
    """The changes since a ladder was computed.

    `rates`: of the sum of all rates, as a share; `mix`: half the sum of the changes of the streams'
    shares of it, from 0 to 1; `costs`: the largest change of a cost; `queries`: those that ended or
    are new, as a share of all then. `reasons`: those that are not tolerated.
    """

    rates: float
    mix: float
    costs: float
    reasons: tuple[StaleReason, ...]
    queries: float = 0.0

    @property
    def largest(self) -> float:
        """Return the largest change that makes a ladder stale, as a share."""
        return max(self.mix, self.costs, self.queries)


def drift_of(row: ArmedLadder, now: SheddingInput, tolerated: float) -> LadderDrift:
    """Return the changes since the snapshot of an armed ladder."""
    then = None if row.snapshot is None else row.snapshot.value().input(SheddingInput)
    if then is None:
        return LadderDrift(0.0, 0.0, 0.0, (StaleReason(StaleCode.UNKNOWN, UNKNOWN),))
    drift = drift_since(then, now, tolerated)
    if row.value.is_provisional and now.has_costs:
        return replace(
            drift, reasons=(StaleReason(StaleCode.PROVISIONAL, MEASURED), *drift.reasons)
        )
    return drift


def drift_since(then: SheddingInput, now: SheddingInput, tolerated: float) -> LadderDrift:
    """Return the changes between two inputs.

    A ladder holds for all rates of one mix, so that only a change of the mix makes it stale.
    """
    mix, costs = _mix_change(then, now), _cost_change(then, now)
    before, after = sum(then.rates.values()), sum(now.rates.values())
    return LadderDrift(
        after / before - 1 if before else 0.0,
        mix,
        costs,
        tuple(_reasons(then, now, (mix, costs), tolerated)),
        _query_change(then, now),
    )


def _reasons(
    then: SheddingInput, now: SheddingInput, changes: tuple[float, float], tolerated: float
) -> Iterator[StaleReason]:
    mix, costs = changes
    if mix > tolerated:
        yield StaleReason(StaleCode.RATES, f"the mix of the streams changed by {100 * mix:,.0f} %")
    if costs > tolerated:
        yield StaleReason(StaleCode.COSTS, f"a cost per record changed by {100 * costs:,.0f} %")
    before = {query.id: query for query in then.queries}
    after = {query.id: query for query in now.queries}
    ended, new = len(before.keys() - after.keys()), len(after.keys() - before.keys())
    if ended or new:
        yield StaleReason(StaleCode.QUERIES, f"{ended} queries ended, {new} are new")
    weights = [
        query
        for query in before.keys() & after.keys()
        if (before[query].weight, before[query].floor) != (after[query].weight, after[query].floor)
    ]
    if weights:
        text = f"weights or minimums kept of {len(weights)} queries changed"
        yield StaleReason(StaleCode.WEIGHTS, text)
    if then.settings != now.settings:
        yield StaleReason(StaleCode.SETTINGS, "the settings of load shedding changed")


def _query_change(then: SheddingInput, now: SheddingInput) -> float:
    before, after = ({query.id for query in given.queries} for given in (then, now))
    return len(before ^ after) / max(1, len(before))


def _mix_change(then: SheddingInput, now: SheddingInput) -> float:
    rows = []
    for given in (then, now):
        total = sum(given.rates.values())
        rows.append({stream: rate / total for stream, rate in given.rates.items()} if total else {})
    before, after = rows
    if not before or not after:
        return 0.0
    streams = before.keys() | after.keys()
    return sum(abs(before.get(s, 0.0) - after.get(s, 0.0)) for s in streams) / 2


def _cost_change(then: SheddingInput, now: SheddingInput) -> float:
    """Return the largest relative change of a cost, or of the usable time, measured in both."""
    pairs = [(then.split_seconds, now.split_seconds), (then.merge_s, now.merge_s)]
    after = {node.node: node.seconds for node in now.nodes}
    pairs += [(node.seconds, after.get(node.node)) for node in then.nodes]
    before, present = then.usable(), now.usable()
    if then.batch is not None and now.batch is not None:
        pairs.append((before, present))
    changes = [abs(new / old - 1) for old, new in pairs if old and new is not None]
    return max(changes, default=0.0)
