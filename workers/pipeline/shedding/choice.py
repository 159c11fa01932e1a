"""The state of a ladder in the offset, and the next one, from what a planning measures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from controlplane.wire.routing.compiled_ladder import CompiledLadder, Floats
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
from workers.pipeline.shedding.provisional import is_assumed
from workers.pipeline.shedding.window_steps import (
    EventTimes,
    WindowRules,
    current_share,
    next_rules,
    rules_from_json,
    rules_to_json,
)

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
