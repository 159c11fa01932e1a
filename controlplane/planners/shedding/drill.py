"""Drills: what a ladder would have dropped over a past time range, from recorded rates.

The position is chosen as the pipeline chooses it (`wire.routing.ladder_position`), from the rates
of each stored period; backlogs are not replayed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any, Final

import numpy as np

from controlplane.errors import Conflict, Invalid
from controlplane.models import ArmedLadder, Cluster
from controlplane.planners.shedding.arming import compute
from controlplane.planners.shedding.inputs import SheddingInput, SheddingQuery
from controlplane.planners.shedding.observation import read_input
from controlplane.planners.shedding.quality import kept_by, parts_at
from controlplane.telemetry.arrivals import RateHistory, rates_between
from controlplane.wire.figures import KEPT
from controlplane.wire.routing.compiled_ladder import CompiledLadder, compiled_ladder, rates_of
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.routing.ladder_position import START, Needed, least_position, next_state

LONGEST: Final = timedelta(days=31)
OLDEST: Final = max(KEPT["stream"].values())


@dataclass(frozen=True)
class DrillPoint:
    """A period: records/s of all streams, those that the ladder keeps, its position, the factor."""

    start: datetime
    input_per_s: float
    kept_per_s: float
    position: float
    factor: float


@dataclass(frozen=True)
class LeastKept:
    """The query that keeps the least in some period, and for how long (s) it keeps no more."""

    query: int
    kept: float
    seconds: float
    floor: float
    name: str = ""


@dataclass(frozen=True)
class Drill:
    """What a ladder would have dropped; `seconds`: the length of a period.

    `above_s`: time with more input than the cluster can process. `quality_lost`: the part of the
    value of all records.
    """

    seconds: int
    points: tuple[DrillPoint, ...]
    arrived: float
    dropped: float
    quality_lost: float
    above_s: float
    least: LeastKept | None

    @property
    def dropped_share(self) -> float:
        """Return the part of the records that would have been dropped."""
        return self.dropped / self.arrived if self.arrived else 0.0

    @property
    def largest_factor(self) -> float:
        """Return the largest input factor."""
        return max((point.factor for point in self.points), default=0.0)

    @property
    def changes(self) -> list[tuple[datetime, int]]:
        """Return the times at which the rung would have changed, with the new rung."""
        result: list[tuple[datetime, int]] = []
        for point in self.points:
            rung = ceil(point.position)
            if rung != (result[-1][1] if result else 0):
                result.append((point.start, rung))
        return result


def run_drill(cluster: Cluster, start: datetime, stop: datetime) -> Drill:
    """Return what the armed ladder, or else the one for the present rates, would have dropped.

    Raises `Invalid` for an impossible range, `Conflict` no_history, and the errors of
    `arming.compute`.
    """
    _check_range(start, stop)
    row = ArmedLadder.objects.filter(cluster=cluster).first()
    if row is None:
        computed = compute(cluster)
        ladder, given = computed.ladder, computed.snapshot.input(SheddingInput)
        assert given is not None, "the shedding plan is computed from it"
    else:
        ladder, given = row.value, read_input(cluster)
    streams = {stream for query in given.queries for stream in query.streams}
    recorded = rates_between(cluster, start, stop, sorted(streams))
    if not recorded.rates.shape[1]:
        message = f"No rates are stored from {start:%Y-%m-%d %H:%M} to {stop:%Y-%m-%d %H:%M} UTC"
        raise Conflict("no_history", message)
    return _with_name(cluster, replay(ladder, given, recorded))


def _with_name(cluster: Cluster, drill: Drill) -> Drill:
    """Return a drill whose query with the least has its name, "" if the query is deleted."""
    if drill.least is None:
        return drill
    names = cluster.queries.filter(pk=drill.least.query).values_list("name", flat=True)
    return replace(drill, least=replace(drill.least, name=names.first() or ""))


def _check_range(start: datetime, stop: datetime) -> None:
    now = datetime.now(UTC)
    faults = {
        "start": [f"Must be in the last {OLDEST.days} days"] if start < now - OLDEST else [],
        "stop": (
            ["Must be after the start"]
            if stop <= start
            else [f"Must be at most {LONGEST.days} days after the start"]
            if stop - start > LONGEST
            else []
        ),
    }
    if any(faults.values()):
        raise Invalid({name: messages for name, messages in faults.items() if messages})


def replay(ladder: Ladder, given: SheddingInput, recorded: RateHistory) -> Drill:
    """Return what a ladder would have dropped at these rates."""
    compiled = compiled_ladder(ladder)
    totals = _Totals(given.queries)
    state, points = START, []
    # Positions of steady input recur: the parts at each are computed once.
    known: dict[float, Mapping[Any, float]] = {}
    for place, begin in enumerate(recorded.starts):
        column = recorded.rates[:, place]
        rates = dict(zip(recorded.streams.tolist(), np.nan_to_num(column).tolist(), strict=True))
        needed, factor = needed_position(compiled, rates)
        now_ms = round(begin.timestamp() * 1000)
        state = next_state(state, Needed(needed, needed, factor), now_ms, ladder.hold_ms)
        position = round(state.position, 6)
        if position not in known:
            known[position] = parts_at(ladder, position)
        kept = totals.add(known[position], rates, recorded.seconds)
        arriving = sum(rates.values())
        points.append(DrillPoint(begin, arriving, arriving * kept, position, factor))
    above = sum(point.factor > 1 for point in points)
    return Drill(
        recorded.seconds,
        tuple(points),
        totals.arrived,
        totals.dropped,
        totals.quality_lost,
        float(above * recorded.seconds),
        totals.least(),
    )


def needed_position(ladder: CompiledLadder, rates: Mapping[int, float]) -> tuple[float, float]:
    """Return the least position for these rates without a backlog, and the input factor."""
    loads = ladder.loads(rates_of(ladder.streams, rates))
    limit = ladder.ladder.limit
    position = least_position(loads, np.zeros(len(ladder.resources)), limit)
    return position, float(loads[:, 0].max(initial=0.0)) / limit


class _Totals:
    """Sums over the periods of a drill."""

    def __init__(self, queries: Sequence[SheddingQuery]) -> None:
        self._queries = queries
        self._floors = {query.id: query.floor for query in queries}
        self._least: dict[int, tuple[float, float]] = {}
        self._lost = self._value = 0.0
        self.arrived = self.dropped = 0.0

    def add(self, parts: Mapping[Any, float], rates: Mapping[int, float], seconds: int) -> float:
        """Add a period; return the part of its records that is kept."""
        kept = kept_by(parts, self._queries, rates)
        records = sum(rates.values()) * seconds
        self.arrived += records
        self.dropped += records * (1 - kept.input)
        value = seconds * sum(
            query.weight * rates.get(stream, 0.0)
            for query in self._queries
            for stream in query.streams
        )
        self._value += value
        self._lost += value * kept.quality_lost
        for query, part in kept.queries.items():
            before, lasted = self._least.get(query, (1.0, 0.0))
            if part < before:
                self._least[query] = part, float(seconds)
            elif part == before < 1:
                self._least[query] = before, lasted + seconds
        return kept.input

    @property
    def quality_lost(self) -> float:
        """Return the part of the value of all records that is lost."""
        return self._lost / self._value if self._value else 0.0

    def least(self) -> LeastKept | None:
        """Return the query that keeps the least."""
        if not self._least:
            return None
        query, (part, seconds) = min(self._least.items(), key=lambda item: item[1][0])
        return LeastKept(query, part, seconds, self._floors[query])
