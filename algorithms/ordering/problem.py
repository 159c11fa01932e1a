"""Moves to be ordered, as flat arrays, and their order."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

import numpy as np

from algorithms.errors import BadProblem
from algorithms.rows import pick_rows
from algorithms.vocabulary import Floats, Ints

# Sums of rates in another order differ in the last digits.
SLACK: Final = 1e-9


@dataclass(frozen=True)
class Order:
    """The order of moves, by their given positions, and its balance.

    `imbalance`, `worst` float64[moves]: after each of them, the largest load/capacity less the
    mean, and the largest. `start`: the largest at the beginning. `safe`: whether no prefix has a
    node worse loaded than the worst one at the beginning.
    """

    order: tuple[int, ...]
    imbalance: Floats
    worst: Floats
    start: float
    safe: bool


class WorkUnits(NamedTuple):
    """Units of work and the node of each; u units, e entries (a source that a unit reads).

    `indptr` int64[u + 1], `sources` int64[e]: the sources of a unit, each once; `nodes` int64[u].
    A node receives a source once for all its units that read it (paper 000, section 2).
    """

    indptr: Ints
    sources: Ints
    nodes: Ints


class MoveSet(NamedTuple):
    """Moves of units that each move once; k nodes, n moves, e entries (a source of a move each).

    `loads`, `capacities` float64[k]: records/s of each node before the moves. `sources`, `targets`
    int64[n]: nodes. Entries by rows `indptr` int64[n + 1]: `leaving`, `coming` int64[e] are *spots*
    (a source at the node that the unit leaves, at the one to which it moves), `rates` float64[e]
    that of the source. `readers` int64[spots]: units that read the source there before the moves.
    """

    loads: Floats
    capacities: Floats
    sources: Ints
    targets: Ints
    indptr: Ints
    leaving: Ints
    coming: Ints
    rates: Floats
    readers: Ints

    @classmethod
    def from_units(
        cls, rates: Any, capacities: Any, units: WorkUnits, moving: Ints, targets: Ints
    ) -> Self:
        """Return the moves of the units `moving` int64[n] to the nodes `targets` int64[n].

        `rates`: records/s of each source; `capacities`: of each node. Raises `BadProblem`.
        """
        sizes = checked_capacities(capacities)
        known = np.asarray(rates, np.float64)
        resident = np.repeat(units.nodes, np.diff(units.indptr)) * len(known) + units.sources
        indptr, entries = pick_rows(units.indptr, moving)
        read = units.sources[entries]
        coming = np.repeat(targets, np.diff(indptr)) * len(known) + read
        keys, spots = np.unique(np.concatenate([resident, coming]), return_inverse=True)
        readers = np.bincount(spots[: len(resident)], minlength=len(keys)).astype(np.int64)
        loads: Floats = np.zeros(len(sizes))
        if len(keys):
            received = known[keys % len(known)] * (readers > 0)
            loads += np.bincount(keys // len(known), received, len(sizes))
        return cls(
            loads, sizes, units.nodes[moving], targets, indptr,
            spots[entries], spots[len(resident) :], known[read], readers,
        )  # fmt: skip


def checked_capacities(capacities: Any) -> Floats:
    """Return the capacities as float64 vector. Raises `BadProblem` unless all are above 0."""
    sizes = np.asarray(capacities, np.float64)
    if not (sizes > 0).all():
        raise BadProblem("capacities", "must be above 0")
    return sizes
