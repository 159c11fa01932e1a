"""Consistent grouping: virtual workers of equal load, moved from busy workers to idle ones.

Paper 002, section 5. Random choices (Algorithm 1) assign keys to virtual workers, each of which
belongs to a worker. After every time slot, workers that are busy or idle send a signal, and each
pair of a busy and an idle worker moves a virtual worker. `simulation` has the mechanism with
acknowledgements; in the pipeline, the signals follow from what workers report (`combined`).

Beyond the paper: hysteresis, after which moves stop while the load is steady; several moves per
slot; and thresholds relative to the mean, without which nothing moves when all workers are busy.
"""

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.errors import BadParameters, BadProblem
from algorithms.partitioning.grouping import (
    Feedback,
    Grouping,
    GroupingState,
    Hashes,
    Messages,
    Workers,
)
from algorithms.partitioning.groupings.hash_choice import mixed_word
from algorithms.partitioning.virtual_workers import (
    Rules,
    Views,
    choose_virtual_worker,
    new_views,
    pair_workers,
    receive_signal,
    signal_workers,
)
from algorithms.vocabulary import MAX_SEED, MAX_SLACK, Floats, Ints, parameter

# Virtual workers of all workers together, so that the packed state stays small.
MAX_VIRTUAL: Final = 2_048
# Messages per virtual worker on average above which all loads are halved.
REMEMBERED: Final = 1 << 14
OLDEST: Final = "oldest"
NEWEST: Final = "newest"
_MILLISECONDS: Final = 1_000
# Sums of utilisation are kept as whole millionths.
_PARTS: Final = 1_000_000
_LARGEST_LOAD: Final = 2**40
_LARGEST_TIME: Final = 2**62
_PER_VIRTUAL: Final = ("load", "owner", "entered")
_PER_WORKER: Final = ("wanted", "since", "reported")


@dataclass(frozen=True, eq=False)
class VirtualState(GroupingState):
    """The view of a source, see `Views`, whose arrays have one row.

    `evidence`: float64[2, n], see `signal_workers`; `slot_start_ms`: when the present time slot
    started, None before the first feedback.
    """

    view: Views
    evidence: Floats
    slot_start_ms: int | None


@dataclass(frozen=True)
class ConsistentGrouping(Grouping[VirtualState]):
    """Sends a key to virtual workers by random choices, and these to workers by their signals."""

    name: ClassVar[str] = "consistent_grouping"

    eps: float = parameter(
        0.01, title="Uneven load allowed", letter="epsilon",
        help="A virtual worker receives at most (1 + eps) times the mean load.",
        minimum=0.0, maximum=MAX_SLACK,
    )  # fmt: skip
    virtual: int = parameter(
        20, title="Virtual workers", unit="per worker",
        help="Virtual workers per worker; in the pipeline fewer if there would be more than "
        f"{MAX_VIRTUAL:,} in all.",
        minimum=1, maximum=MAX_VIRTUAL,
    )  # fmt: skip
    lower: float = parameter(
        0.75,
        title="Threshold of idle workers",
        help="A worker with less utilisation is idle.",
        minimum=0.0,
        maximum=1.0,
    )
    upper: float = parameter(
        0.85,
        title="Threshold of busy workers",
        help="A worker with more utilisation is busy.",
        minimum=0.0,
        maximum=1.0,
    )
    hysteresis: float = parameter(
        0.5, unit="slots",
        help="How much utilisation beyond a threshold, summed over time slots, a worker signals "
        "after. 0: after every slot beyond it, as in the paper; then moves never stop.",
        minimum=0.0, maximum=100.0,
    )  # fmt: skip
    relative: bool = parameter(
        default=True,
        title="Compare with the average",
        help="If all workers together are busier than the middle of the thresholds, each is "
        "compared with their average. Otherwise nothing moves when all are busy, as in the paper.",
    )
    moves: int = parameter(
        16, title="Moves per signal", unit="per slot",
        help="Most virtual workers that a signal moves; 1 as in the paper.",
        minimum=1, maximum=MAX_VIRTUAL,
    )  # fmt: skip
    slot_s: float = parameter(
        5.0, title="Time slot",
        unit="s", help="Time slot: a worker sends at most one signal in it.",
        minimum=0.0, maximum=86_400.0,
    )  # fmt: skip
    queue: int = parameter(
        10_000, title="Capacity of a queue", unit="messages",
        help="Capacity of a worker's input queue: so many waiting messages count as a utilisation "
        "of 1, in addition to the measured one.",
        minimum=1, maximum=10**9,
    )  # fmt: skip
    moved: str = parameter(
        NEWEST,
        title="Moved virtual worker",
        help="Which virtual worker a busy worker gives: the one that it received last, or the one "
        "that it has had for the longest time.",
        choices={OLDEST: "The oldest", NEWEST: "The newest"},
    )
    seed: int = parameter(
        0, minimum=0, maximum=MAX_SEED, help="Seed of the sequences of virtual workers."
    )
    probe: bool = parameter(
        default=True,
        title="Probing",
        help="While no worker is idle, a busy worker gives to the worker that was busy least "
        "recently (section 6.1.2 of the paper).",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lower >= self.upper:
            why = f"must be below the upper threshold, {self.upper:g}, not {self.lower:g}"
            raise BadParameters({"lower": [why]})

    def rules(self, count: int) -> Rules:
        """Return the parameters for compiled code and so many virtual workers in all."""
        seed, room = np.uint64(mixed_word(self.seed)), self._room(count)
        return Rules(seed, room, self.lower, self.upper, self.hysteresis, self.relative, self.moves,
                     self.moved == OLDEST, self.probe)  # fmt: skip

    def first_owners(self, workers: Workers, virtual: int | None = None) -> Ints:
        """Return the worker of each virtual worker at the beginning, int64[v].

        Every worker has `virtual` on average, by default the parameter, and at least one.
        """
        shares = self.of_workers(workers).shares
        total = workers.count * (self.virtual if virtual is None else virtual)
        counts = 1 + np.floor(shares * (total - workers.count) + 1e-9).astype(np.int64)
        lacking = shares * total - counts
        counts[np.argsort(-lacking, kind="stable")[: total - counts.sum()]] += 1
        return np.repeat(np.arange(workers.count), counts)

    def start(self, workers: Workers) -> VirtualState:
        """Return the state before the first message."""
        known = self.of_workers(workers)
        virtual = max(1, min(self.virtual, MAX_VIRTUAL // workers.count))
        view = new_views(1, self.first_owners(known, virtual), workers.count)
        return VirtualState(known, view, np.zeros((2, workers.count)), None)

    def route(self, state: VirtualState, messages: Messages) -> tuple[Ints, VirtualState]:
        """Return the worker of each message, and the state after them."""
        result, load = np.empty(len(messages), np.int64), state.view.load.copy()
        routed = int(state.view.routed[0])
        seed, room = np.uint64(mixed_word(self.seed)), self._room(load.shape[1])
        route_keys(messages.keys, seed, load[0], routed, state.view.owner[0], room, result)
        return result, _with_load(state, load, routed + len(messages))

    def _room(self, count: int) -> float:
        return (1.0 + self.eps) * (1.0 / count)

    def combined(
        self,
        before: VirtualState,
        after: Sequence[VirtualState],
        feedback: Feedback | None = None,
    ) -> VirtualState:
        """Return the loads of all sources together, and follow the signals once per time slot."""
        load = before.view.load + sum((s.view.load - before.view.load for s in after), np.int64(0))
        while load.sum() > REMEMBERED * load.shape[1]:
            load = load // 2
        state = _with_load(before, load, int(load.sum()))
        if feedback is None:
            return state
        if state.slot_start_ms is None:
            return replace(state, slot_start_ms=feedback.now_ms)
        if feedback.now_ms - state.slot_start_ms < self.slot_s * _MILLISECONDS:
            return state
        return self.signalled(state, feedback)

    def signalled(self, state: VirtualState, feedback: Feedback) -> VirtualState:
        """Return the state after the signals at the end of a time slot."""
        state = replace(state, slot_start_ms=feedback.now_ms)
        level = self._level(feedback, state.workers.count)
        if level is None:
            return state
        rules = self.rules(state.view.load.shape[1])
        evidence = state.evidence.copy()
        signals = signal_workers(level, state.view.owned[0], evidence, rules)
        view = Views(*(array.copy() for array in state.view))
        for worker, signal in enumerate(signals.tolist()):
            if signal or self.hysteresis:
                receive_signal(view, 0, worker, signal, self.moves)
        pair_workers(view, 0, rules)
        # As `pack` keeps it, so that a replay from the packed state decides the same.
        return replace(state, view=view, evidence=np.round(evidence, 6))

    def _level(self, feedback: Feedback, count: int) -> Floats | None:
        """Return the utilisation that counts for the thresholds, None if nothing is known."""
        if feedback.utilisation is None and feedback.waiting is None:
            return None
        level = np.zeros(count)
        if feedback.utilisation is not None:
            level = level + feedback.utilisation
        if feedback.waiting is not None:
            level = level + np.asarray(feedback.waiting) / self.queue
        return level

    def pack(self, state: VirtualState) -> dict[str, Any]:
        """Return the state as JSON values, the arrays compressed."""
        return packed_state(state.view, state.evidence) | {"slot_start_ms": state.slot_start_ms}

    def unpack(self, workers: Workers, row: Mapping[str, Any]) -> VirtualState:
        """Return the state of its packed form. Raises `BadProblem`."""
        start = self.start(workers)
        view, evidence, slot_start_ms = unpacked_state(row, start.view)
        return VirtualState(start.workers, view, evidence, slot_start_ms)


def _with_load(state: VirtualState, load: Ints, routed: int) -> VirtualState:
    view = state.view._replace(load=load, routed=np.array([routed], np.int64))
    return replace(state, view=view)


@compiled
def route_keys(
    keys: Hashes,
    seed: np.uint64,
    load: Ints,
    routed: int,
    owner: Ints,
    room: float,
    workers: Ints,
) -> None:
    """Write the worker of each key into `workers`, and count them in the `load`."""
    for message in range(len(keys)):
        virtual = choose_virtual_worker(keys[message] + seed, load, routed + message, room)
        load[virtual] += 1
        workers[message] = owner[virtual]


def packed_state(view: Views, evidence: Floats) -> dict[str, Any]:
    """Return the arrays of a view of one source and the evidence as JSON values.

    Of the clocks only the order is kept, and of the moves that among virtual workers of a worker.
    """
    entered = _order_of_moves(view.owner[0], view.entered[0])
    since, reported = _ranks(view.since[0], view.reported[0])
    lowest = int(view.load[0].min())
    arrays = (
        view.load[0] - lowest, view.owner[0], entered, view.wanted[0], since, reported,
        np.rint(evidence.ravel() * _PARTS).astype(np.int64),
    )  # fmt: skip
    # Bytes of equal weight side by side, so that the many zeros compress well.
    table = np.concatenate(arrays).astype("<i4").view(np.uint8).reshape(-1, 4).T
    data = zlib.compress(table.tobytes(), 9)
    return {"lowest": lowest, "arrays": base64.b85encode(data).decode()}


def unpacked_state(row: Mapping[str, Any], start: Views) -> tuple[Views, Floats, int | None]:
    """Return the view, the evidence and the start of the time slot of a packed state.

    `start`: the view at the beginning, which has the sizes. Raises `BadProblem`.
    """
    virtual, workers = start.owner.shape[1], start.owned.shape[1]
    values = _values(row, 3 * virtual + 5 * workers)
    parts = np.split(values, np.cumsum([virtual] * 3 + [workers] * 3))
    arrays = dict(zip((*_PER_VIRTUAL, *_PER_WORKER, "evidence"), parts, strict=True))
    lowest = _whole(row, "lowest", _LARGEST_LOAD)
    slot = (
        _whole(row, "slot_start_ms", _LARGEST_TIME)
        if row.get("slot_start_ms") is not None
        else None
    )
    owner = arrays["owner"]
    owned = np.bincount(np.clip(owner, 0, workers), minlength=workers)
    if owner.min() < 0 or len(owned) > workers or not owned.all():
        raise BadProblem("state.arrays", f"must have virtual workers of {workers:,} workers")
    if any(arrays[name].min() < 0 for name in ("load", "entered", "since", "reported")):
        raise BadProblem("state.arrays", "must not have negative loads or clocks")
    load = arrays["load"] + lowest
    clock = max(int(arrays[name].max()) for name in ("entered", "since", "reported"))
    rows = {name: arrays[name][None, :] for name in (*_PER_VIRTUAL[1:], *_PER_WORKER)}
    view = Views(
        load=load[None, :], owned=owned[None, :].astype(np.int64),
        routed=np.array([load.sum()]), clock=np.array([clock]), **rows,
    )  # fmt: skip
    return view, arrays["evidence"].reshape(2, workers) / _PARTS, slot


def _ranks(*clocks: Ints) -> list[Ints]:
    """Return the clocks counted from 1 without gaps; 0 stays 0."""
    known = np.unique(np.concatenate([[0], *clocks]))
    return [np.searchsorted(known, clock) for clock in clocks]


def _order_of_moves(owner: Ints, entered: Ints) -> Ints:
    """Return the number of each virtual worker's move to its worker, from 1; 0 if it never moved.

    The moves to each worker are counted for themselves; only moves to the present worker count.
    """
    order = np.lexsort((entered, owner))
    moved = (entered[order] > 0).astype(np.int64)
    before = np.cumsum(moved) - moved
    firsts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    lengths = np.diff(np.append(firsts, len(owner)))
    result = np.empty_like(owner)
    result[order] = moved * (1 + before - np.repeat(before[firsts], lengths))
    return result


def _values(row: Mapping[str, Any], count: int) -> Ints:
    try:
        data = zlib.decompressobj().decompress(base64.b85decode(row["arrays"]), 4 * count + 1)
    except (KeyError, TypeError, ValueError, zlib.error, binascii.Error) as error:
        raise BadProblem("state.arrays", "must be compressed arrays") from error
    if len(data) != 4 * count:
        raise BadProblem("state.arrays", f"must have {count:,} values")
    table = np.frombuffer(data, np.uint8).reshape(4, -1).T
    return np.ascontiguousarray(table).view("<i4").ravel().astype(np.int64)


def _whole(row: Mapping[str, Any], name: str, most: int) -> int:
    value = row.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise BadProblem(f"state.{name}", f"must be a whole number from 0 on, not {value!r}")
    return value
