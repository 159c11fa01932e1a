"""The state of a ladder in the offset, and the next one, from what a planning measures.

A cluster that was never busy shows no cost per record: its batches take the time that they take
without records. A provisional ladder then has equal costs for all nodes, and their factor follows
from the first batches that take longer: before them, nothing is dropped for the sake of assumed
costs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from controlplane.wire.routing.compiled_ladder import CompiledLadder, Floats, Resource
from controlplane.wire.routing.drop_rules import INPUT
from controlplane.wire.routing.ladder import ResourceKind
from controlplane.wire.routing.ladder_position import (
    START,
    Needed,
    PositionState,
    least_position,
    next_state,
)
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.routing.key_grouping import NodeLoads
from workers.pipeline.shedding.arrivals import AppendedCounts, Rates
from workers.pipeline.shedding.window_steps import (
    EventTimes,
    WindowRules,
    current_share,
    next_rules,
    rules_from_json,
    rules_to_json,
)

# A batch shows a cost if it takes so many times the time of an empty one.
_LONG: Final = 2.0
# Batches that must show it: a single one may be long for other reasons.
_BATCHES: Final = 2


def is_assumed(resource: Resource, capacities: Mapping[int, float]) -> bool:
    """Return whether the costs of a resource of a provisional ladder are assumed.

    `capacities`: records/s of nodes with an emulated capacity.
    """
    kind, number = resource
    return kind is ResourceKind.NODE and number not in capacities


def cost_factor(
    ladder: CompiledLadder, rows: Sequence[Mapping[str, Any]], capacities: Mapping[int, float]
) -> float:
    """Return by what to multiply the assumed costs of a provisional ladder; 0: not known yet.

    The least factor of the newest batches with records. `rows`: telemetry, the newest first.
    """
    assert ladder.ladder.is_provisional
    assumed = np.array([is_assumed(resource, capacities) for resource in ladder.resources])
    newest = [row for row in rows if row.get("in") and row.get("work_ms")][:_BATCHES]
    if len(newest) < _BATCHES or not assumed.any():
        return 0.0
    return min(_factor_of(ladder, row, assumed) for row in newest)


def _factor_of(ladder: CompiledLadder, row: Mapping[str, Any], assumed: Floats) -> float:
    """Return the factor by which the fullest resource takes the time of a batch."""
    empty_s, batch_s = (ladder.ladder.empty_batch_ms or 0) / 1000, ladder.ladder.drain_ms / 2000
    work_s = float(row["work_ms"]) / 1000
    if work_s <= _LONG * empty_s:
        return 0.0
    records = np.array([row.get("streams", {}).get(str(stream), 0) for stream in ladder.streams])
    by_rung = ladder.loads(records.astype(np.float64))[assumed]
    rungs = np.arange(by_rung.shape[1])
    position = float(row.get("ladder_position") or 0.0)
    seconds = max(float(np.interp(position, rungs, loads)) for loads in by_rung)
    # Of a batch of the longest duration, this share is left for records.
    usable = 1 - empty_s / max(batch_s, _LONG * empty_s) if empty_s else 1.0
    return (work_s - empty_s) / (seconds * usable) if seconds else 0.0


# Records are a backlog if they are unread for more than so many intervals between batches, or wait
# at a node for more than so many: less is the way of micro-batches.
_UNREAD_INTERVALS: Final = 1.5
_WAITING_INTERVALS: Final = 0.5


@dataclass(frozen=True, slots=True)
class LadderState:
    """The state of a ladder for one batch.

    `windows`: the rules that drop whole windows; `newest`: the newest event time (ms) that was
    read before the batch, by stream with window drops.
    """

    position: PositionState = START
    windows: WindowRules = field(default_factory=dict)
    newest: Mapping[int, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the state as the offset has it."""
        return {
            **self.position.to_json(),
            "windows": rules_to_json(self.windows),
            "newest": [list(pair) for pair in self.newest.items()],
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "LadderState":
        """Return the state that `to_json` wrote."""
        values = dict(row)
        windows, newest = values.pop("windows"), values.pop("newest")
        times = {int(stream): int(ms) for stream, ms in newest}
        return cls(PositionState(**values), rules_from_json(windows), times)


def header_of(row: Mapping[str, Any] | None) -> Sequence[Any] | None:
    """Return what the header of a batch has of the state in its offset: see `LadderDrops.of`."""
    return None if row is None else [row["position"], row["factor"], row["windows"]]


@dataclass(frozen=True)
class BatchMeasures:
    """What was measured when a batch is planned.

    `appended`: of `CompiledLadder.streams`; `rates`: None if not known yet; `nodes`: what waits at
    the nodes; `capacities`: records/s of nodes with an emulated capacity; `times`: of the streams
    with window drops; `idle_ms`: since the batch before was planned. `cost_factor`: of the assumed
    costs of a provisional ladder.
    """

    appended: AppendedCounts
    rates: Rates | None
    nodes: NodeLoads
    capacities: Mapping[int, float]
    times: EventTimes
    now_ms: int
    idle_ms: int = 0
    cost_factor: float = 1.0


def next_ladder_state(
    before: LadderState | None,
    former: CompiledLadder | None,
    ladder: CompiledLadder | None,
    measured: BatchMeasures,
) -> LadderState | None:
    """Return the state for the next batch, None if no ladder is armed and nothing is dropped.

    `former`: the ladder of the state before. A ladder that replaces it starts at the position with
    the same input factor.
    """
    state = before or LadderState()
    if ladder is None:
        windows = next_rules(state.windows, None, 0.0, measured.times)
        return LadderState(START, windows, measured.times.newest) if windows else None
    position = state.position
    if measured.idle_ms > ladder.ladder.hold_ms:
        # No record needed a batch: the hold time is over.
        position = START
    if former is not None and former is not ladder:
        position = _translated(position, former, ladder)
    needed = needed_positions(ladder, measured)
    after = next_state(position, needed, measured.now_ms, ladder.ladder.hold_ms)
    windows = next_rules(state.windows, ladder, after.position, measured.times)
    return LadderState(after, windows, measured.times.newest)


def _translated(
    state: PositionState, former: CompiledLadder, ladder: CompiledLadder
) -> PositionState:
    def translate(position: float) -> float:
        return ladder.position_of(former.factor_of(position)) if position > 0 else 0.0

    return replace(
        state,
        position=translate(state.position),
        held=translate(state.held),
        extreme=translate(state.extreme),
    )


def needed_positions(ladder: CompiledLadder, measured: BatchMeasures) -> Needed:
    """Return the positions at which no load exceeds the limit of the ladder.

    A backlog counts as a further rate, so that it is worked off within `Ladder.drain_ms`.
    """
    limit, drain_ms = ladder.ladder.limit, ladder.ladder.drain_ms
    rates, none = measured.rates, np.zeros(len(ladder.resources))
    per_s = np.zeros(len(ladder.streams)) if rates is None else rates.per_s
    interval_ms = 0 if rates is None else rates.interval_ms
    loads = _loads(ladder, per_s, measured)
    by_rates = None if rates is None else least_position(loads, none, limit)
    factor = float(loads[:, 0].max(initial=0.0)) / limit
    usual_s = min(_UNREAD_INTERVALS * interval_ms, drain_ms / 2) / 1000
    excess = np.maximum(0.0, measured.appended.unread - per_s * usual_s)
    fixed = _waiting_loads(ladder, measured, _WAITING_INTERVALS * interval_ms)
    if excess.any():
        loads = _loads(ladder, per_s + excess * (1000 / drain_ms), measured)
    with_backlogs = max(least_position(loads, fixed, limit), ladder.ladder.least)
    return Needed(by_rates, with_backlogs, round(factor, 6))


def _loads(ladder: CompiledLadder, per_s: Floats, measured: BatchMeasures) -> Floats:
    """Return the load of each resource at each rung; the factor of assumed costs is measured."""
    loads = ladder.loads(per_s)
    if not ladder.ladder.is_provisional:
        return loads
    factors = [
        measured.cost_factor if is_assumed(resource, measured.capacities) else 1.0
        for resource in ladder.resources
    ]
    scaled: Floats = loads * np.array(factors)[:, None]
    return scaled


def _waiting_loads(ladder: CompiledLadder, measured: BatchMeasures, usual_ms: float) -> Floats:
    """Return the load of each resource that works off what waits at nodes, float64[resources]."""
    result = np.zeros(len(ladder.resources))
    for index, (kind, number) in enumerate(ladder.resources):
        capacity, load = measured.capacities.get(number), measured.nodes.get(number)
        if kind is ResourceKind.NODE and capacity and load is not None:
            waiting_ms = load.waiting / capacity * 1000
            result[index] = max(0.0, waiting_ms - usual_ms) / ladder.ladder.drain_ms
    return result


def kept_of_streams(state: LadderState | None, table: CompiledTable) -> dict[int, float]:
    """Return the part of each stream's records that its input edge keeps, without those of 1.

    By the ladder alone: what rules drop is small, or also unknown before it is read.
    """
    if state is None:
        return {}
    result = {}
    ladder = table.ladder
    if ladder is not None and state.position.position > 0:
        inputs = (edge for edge in ladder.ladder.edges if edge[1] == INPUT)
        for edge in inputs:
            if edge not in ladder.windows:
                result[edge[0]] = ladder.part(edge, state.position.position)
    for (stream, query), rule in state.windows.items():
        if query == INPUT:
            result[stream] = 1 - current_share(rule, state.newest.get(stream))
    return {stream: kept for stream, kept in result.items() if kept < 1}
