"""The problem of improving a running placement, and the measures that its limits bound."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

import numpy as np

from algorithms.balance import imbalance
from algorithms.checks import amounts, as_integers
from algorithms.errors import BadProblem
from algorithms.placement import checks
from algorithms.rows import boundaries
from algorithms.vocabulary import Flags, Floats, Ints, SmallInts

# Differences below this share are rounding.
SAME: Final = 1e-9


class Measured(NamedTuple):
    """What limits bound: the replication factor, the imbalance, and the load of the fullest node.

    The replication factor is the traffic of streams over their summed rate. A node's load is what
    it processes over its capacity; the imbalance is the largest load less the mean.
    """

    replication: float
    imbalance: float
    fullest: float


class MeasureLimits(NamedTuple):
    """The largest values of the measures that a policy allows."""

    replication: float = np.inf
    imbalance: float = np.inf
    fullest: float = np.inf

    def exceedances(self, values: Measured) -> list[float]:
        """Return by how much each measure exceeds its limit, in units of the limit, falling."""
        over = (
            max(0.0, value - limit) / max(limit, SAME)
            for value, limit in zip(values, self, strict=True)
        )
        return sorted(over, reverse=True)

    def not_below(self, values: Measured) -> "MeasureLimits":
        """Return limits that allow these measures, too."""
        return MeasureLimits(*map(max, self, values))


class MoveBudget(NamedTuple):
    """The most moves of a plan, and the most bytes of state that they transfer."""

    moves: float = np.inf
    bytes: float = np.inf


_UNLIMITED: Final = MoveBudget()


@dataclass(frozen=True, eq=False)
class ImproveProblem:
    """Units on nodes, as they run, and what a better placement may change; u units, k nodes.

    `rates` float64[m]: records/s of each stream, which a node receives once for all its units.
    `indptr` int64[u + 1], `indices` int32[...]: the streams that a unit reads; `parts`
    float64[...]: the part of their records, of which different units read different ones unless a
    part is 1: all. `costs` float64[u]: the cost of its move. `present` int32[u]: its node.
    `movable` bool[u]: whether it may move. `capacities` float64[k]: records/s of each node.
    `active` bool[k]: nodes that may host units; movable units leave all others. `open` bool[k]: the
    active nodes that may receive further units. `sizes` float64[u]: the bytes of state of each
    unit; a plan stays within `budget`, apart from moves that must be.
    """

    rates: Floats
    indptr: Ints
    indices: SmallInts
    parts: Floats
    costs: Floats
    present: SmallInts
    movable: Flags
    capacities: Floats
    active: Flags
    open: Flags
    limits: MeasureLimits
    sizes: Floats
    budget: MoveBudget = _UNLIMITED

    @classmethod
    def from_arrays(
        cls,
        rates: Any,
        indptr: Any,
        indices: Any,
        present: Any,
        capacities: Any,
        limits: MeasureLimits,
        *,
        parts: Any = None,
        costs: Any = None,
        movable: Any = None,
        active: Any = None,
        open_nodes: Any = None,
        sizes: Any = None,
    ) -> Self:
        """Build a checked problem; every unit reads all, costs 1 and may move by default.

        Raises `BadProblem`, which names the wrong value and why.
        """
        rows = as_integers("indptr", indptr)
        full = checks.checked_capacities(capacities, len(capacities))
        units, nodes = len(rows) - 1, len(full)
        speeds = checks.checked_rates(rates)
        read = checks.checked_sources(indices, rows, len(speeds))
        hosts = checks.checked_assignment(present, units, nodes)
        zeros, yes = np.zeros(units), np.ones(units, np.bool_)
        up = np.ones(nodes, np.bool_) if active is None else np.asarray(active, np.bool_)
        return cls(
            speeds, rows, read,
            np.ones(len(read)) if parts is None else amounts("parts", parts),
            np.ones(units) if costs is None else amounts("costs", costs),
            hosts,
            yes if movable is None else np.asarray(movable, np.bool_),
            full, up,
            up if open_nodes is None else up & np.asarray(open_nodes, np.bool_),
            limits,
            zeros if sizes is None else amounts("sizes", sizes),
        )  # fmt: skip

    def __post_init__(self) -> None:
        """Raise `BadProblem` unless lengths agree and units that must move have a target."""
        if len(self.parts) != len(self.indices) or (self.parts > 1).any():
            raise BadProblem("parts", "must have a value of at most 1 per stream of each unit")
        for name in ("costs", "movable", "sizes"):
            if len(getattr(self, name)) != self.units:
                raise BadProblem(name, f"must have {self.units} values, one per unit")
        if self.leaving.any() and not self.open.any():
            raise BadProblem("open", "no node may receive the units that must leave theirs")

    @property
    def units(self) -> int:
        """Number of units, u."""
        return len(self.present)

    @property
    def nodes(self) -> int:
        """Number of nodes, k."""
        return len(self.capacities)

    @cached_property
    def leaving(self) -> Flags:
        """The units that must move: those on nodes that are not active, bool[u]."""
        leaving: Flags = self.movable & ~self.active[self.present]
        return leaving

    def by_budget(self, begin: SmallInts) -> tuple[Self, float]:
        """Return the problem with costs that are parts of the budget, and the most of their sum.

        It is at least that of the moves to `begin`, which must be; inf without a budget.
        """
        if min(self.budget) == np.inf:
            return self, np.inf
        moves, size = (max(0.5, most) for most in self.budget)
        shares = np.maximum(1 / moves, self.sizes / size)
        # As without a budget, a move costs 1 on average.
        costs = shares / shares.mean()
        must = float(costs[begin != self.present].sum())
        return replace(self, costs=costs), max(must, 1 / float(shares.mean()))

    @cached_property
    def live(self) -> float:
        """Summed rate of the streams that a unit reads."""
        return float(self.rates[np.unique(self.indices)].sum())

    @cached_property
    def owners(self) -> Ints:
        """The unit of each entry of `indices`, int64[...]."""
        return np.repeat(np.arange(self.units), np.diff(self.indptr))

    @cached_property
    def is_complete(self) -> Flags:
        """Whether an entry of `indices` is for all records of its stream, bool[...]."""
        complete: Flags = self.parts >= 1
        return complete

    def readers_by_stream(self) -> tuple[Ints, SmallInts]:
        """Return the units that read all of each stream, as rows."""
        read = self.indices[self.is_complete]
        order = np.argsort(read, kind="stable")
        counts = np.bincount(read, minlength=len(self.rates))
        return boundaries(counts), self.owners[self.is_complete][order].astype(np.int32)

    def readers_by_node(self, hosts: SmallInts) -> SmallInts:
        """Return how many units of a node read all of a stream, int32[m, k]."""
        counts = np.zeros((len(self.rates), self.nodes), np.int32)
        spots = self.indices[self.is_complete], hosts[self.owners[self.is_complete]]
        np.add.at(counts, spots, 1)
        return counts

    def added(self, hosts: SmallInts) -> Floats:
        """Return the records/s that the first reader of all of a stream adds, float64[m, k].

        The others than those of which units on the node read parts.
        """
        parts = np.zeros((len(self.rates), self.nodes))
        partial = ~self.is_complete
        spots = self.indices[partial], hosts[self.owners[partial]]
        np.add.at(parts, spots, self.parts[partial])
        added: Floats = self.rates[:, None] * (1 - parts)
        return added

    def loads(self, hosts: SmallInts) -> Floats:
        """Return the records/s that each node receives and processes, float64[k]."""
        missing = np.where(self.readers_by_node(hosts) > 0, 0.0, self.added(hosts))
        loads: Floats = (self.rates[:, None] - missing).sum(axis=0)
        return loads

    def measured(self, hosts: SmallInts) -> Measured:
        """Return the measures of an assignment."""
        loads = self.loads(hosts)
        shares = loads / self.capacities
        return Measured(
            float(loads.sum()) / self.live if self.live else 0.0,
            imbalance(shares),
            float(shares.max(initial=0.0)),
        )
