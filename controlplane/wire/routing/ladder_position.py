"""The choice of the position on a ladder: pure functions of loads and of the state before."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from controlplane.formats.json_values import JsonValue
from controlplane.wire.routing.compiled_ladder import Floats

# A load counts for the hold time after it lasted so long: a shorter burst is over before a hold
# would help, and holding its position drops records for which there is room.
SUSTAIN_MS: Final = 5_000
# A load that falls is measured as it is after so long: the rates of the time of the fall are means
# of both loads.
FALL_MS: Final = 3_000
# Loads this near to the limit are within it.
_TOLERANCE: Final = 1e-9


def least_position(loads: Floats, fixed: Floats, limit: float) -> float:
    """Return the least position at which no load exceeds the limit; the last one if there is none.

    `loads`: of each resource at each rung, float64[resources, rungs + 1], linear in between;
    `fixed`: further load of each resource that no rung changes.
    """
    excess = loads + fixed[:, None] - limit
    if not excess.size:
        return 0.0
    low, high = excess[:, :-1], excess[:, 1:]
    begins, ends = low <= _TOLERANCE, high <= _TOLERANCE
    crossing = np.clip(low / np.where(begins == ends, 1.0, low - high), 0.0, 1.0)
    # On a segment a load is within the limit from `first` to `last`, fractions of the segment.
    first = np.where(begins, 0.0, np.where(ends, crossing, np.inf)).max(axis=0)
    last = np.where(begins & ~ends, crossing, 1.0).min(axis=0)
    fits = np.flatnonzero(first <= last)
    if not len(fits):
        return float(excess.shape[1] - 1)
    return float(fits[0] + first[fits[0]])


@dataclass(frozen=True, slots=True)
class PositionState(JsonValue):
    """The position of a ladder, and what decides about the next one.

    `held`: the position below which it does not fall before the hold time is over. `is_above`:
    whether the needed position is at least `held`, which it is since `since_ms` (0: for no time);
    `extreme`: the needed position that was the nearest to `held` since then. `active_ms`: since
    when something is dropped, 0 for nothing. `factor`: the input over what the cluster can process
    without drops, as it was measured for this position.
    """

    position: float = 0.0
    held: float = 0.0
    since_ms: int = 0
    extreme: float = 0.0
    is_above: bool = True
    active_ms: int = 0
    factor: float = 0.0


START: Final = PositionState()


@dataclass(frozen=True, slots=True)
class Needed:
    """The positions that loads need: of the arrivals alone (None: not known), and with backlogs.

    `factor`: see `PositionState`.
    """

    by_rates: float | None
    with_backlogs: float
    factor: float = 0.0


def next_state(state: PositionState, needed: Needed, now_ms: int, hold_ms: int) -> PositionState:
    """Return the state after `state`; the position rises to what is needed immediately.

    A position that arrivals needed for `SUSTAIN_MS` is held: it falls after less was needed for
    `hold_ms`, to the highest position that was needed in that time after `FALL_MS`. What a
    backlog needs beyond the arrivals is never held: a backlog that becomes shorter needs less.
    """
    after = state if needed.by_rates is None else _held(state, needed.by_rates, now_ms, hold_ms)
    position = max(after.held, needed.by_rates or 0.0, needed.with_backlogs)
    active_ms = (state.active_ms or now_ms) if position > 0 else 0
    return replace(after, position=position, active_ms=active_ms, factor=needed.factor)


def _held(state: PositionState, needed: float, now_ms: int, hold_ms: int) -> PositionState:
    is_above = needed >= state.held
    if is_above != state.is_above or not state.since_ms:
        state = replace(state, is_above=is_above, since_ms=now_ms, extreme=needed)
    elapsed_ms = now_ms - state.since_ms
    extreme = min(state.extreme, needed) if is_above else max(state.extreme, needed)
    if elapsed_ms < (SUSTAIN_MS if is_above else hold_ms):
        counts = is_above or elapsed_ms >= FALL_MS
        return replace(state, extreme=extreme if counts else 0.0)
    return replace(state, held=extreme, since_ms=now_ms, extreme=needed, is_above=needed >= extreme)
