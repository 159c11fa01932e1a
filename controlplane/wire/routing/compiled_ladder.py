"""Ladders, compiled for the choice of the position and for the drop rules at a position.

The parts of a ladder are prefix variables (paper 003, section 3): the part of a stream's records
that is kept up to an edge. Loads are linear in them, and they are interpolated between rungs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.routing.drop_rules import INPUT, Edge
from controlplane.wire.routing.ladder import Ladder, ResourceKind, WindowDrop

Floats = NDArray[np.float64]
Resource = tuple[ResourceKind, int]
# Position 0 has this factor: the input is what the cluster can process.
_NO_OVERLOAD: Final = 1.0


@dataclass(frozen=True, eq=False)
class CompiledLadder:
    """A ladder with the kept part of each edge at every rung, rung 0 without drops."""

    ladder: Ladder

    @property
    def rungs(self) -> int:
        """Return the number of rungs, which is the last position."""
        return len(self.ladder.rungs)

    @cached_property
    def _index(self) -> dict[Edge, int]:
        edges = {(cost.stream, cost.query) for cost in self.ladder.costs} | self.ladder.edges
        edges |= {(stream, INPUT) for stream, _ in edges}
        return {edge: index for index, edge in enumerate(sorted(edges))}

    @cached_property
    def parts(self) -> Floats:
        """Return the kept part of each edge by rung, float64[edges, rungs + 1].

        An input edge without a part in a rung keeps all. An edge to a query keeps at most what
        its input edge keeps, which is its part if the rung has none.
        """
        result = np.ones((len(self._index), self.rungs + 1))
        rows = np.array([self._index[stream, INPUT] for stream, _ in self._index], np.int64)
        for number, rung in enumerate(self.ladder.rungs, start=1):
            given = {(kept.stream, kept.query): kept.part for kept in rung.kept}
            for edge, part in given.items():
                if edge[1] == INPUT:
                    result[self._index[edge], number] = part
            result[:, number] = result[rows, number]
            for edge, part in given.items():
                index = self._index[edge]
                result[index, number] = min(part, result[rows[index], number])
        return result

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Return what has a load, in the order of `loads`."""
        return tuple(sorted({(cost.kind, cost.number) for cost in self.ladder.costs}))

    @cached_property
    def streams(self) -> tuple[int, ...]:
        """Return the streams whose records have a cost, in rising order."""
        return tuple(sorted({cost.stream for cost in self.ladder.costs}))

    @cached_property
    def _costs(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Floats]:
        """Return resource, stream and edge of each cost by index, and its seconds."""
        resources = {resource: index for index, resource in enumerate(self.resources)}
        streams = {stream: index for index, stream in enumerate(self.streams)}
        rows = [
            (resources[kind, number], streams[stream], self._index[stream, query])
            for stream, query, kind, number, _ in self.ladder.costs
        ]
        resource, stream, edge = np.array(rows, np.int64).reshape(-1, 3).T
        return resource, stream, edge, np.array([cost.seconds for cost in self.ladder.costs])

    def loads(self, rates: Floats) -> Floats:
        """Return the load of each resource at each rung, float64[resources, rungs + 1].

        `rates`: records/s of each of `streams`. A load of 1 is all of a resource's time.
        """
        resource, stream, edge, seconds = self._costs
        time, count = rates[stream] * seconds, len(self.resources)
        columns = [
            np.bincount(resource, time * self.parts[edge, rung], count)
            for rung in range(self.rungs + 1)
        ]
        return np.stack(columns, axis=1)

    def part(self, edge: Edge, position: float) -> float:
        """Return the part of a stream's records that is kept up to an edge at a position."""
        index = self._index.get(edge)
        if index is None:
            return 1.0 if edge[1] == INPUT else self.part((edge[0], INPUT), position)
        rung = min(int(position), self.rungs - 1)
        low, high = self.parts[index, rung], self.parts[index, rung + 1]
        return float(low + (high - low) * (position - rung))

    def share(self, edge: Edge, position: float) -> float:
        """Return the share of the records that reach an edge which the edge drops."""
        part = self.part(edge, position)
        if edge[1] == INPUT:
            return 1.0 - part
        reached = self.part((edge[0], INPUT), position)
        return 1.0 - part / reached if reached > part else 0.0

    @cached_property
    def windows(self) -> Mapping[Edge, WindowDrop]:
        """Return the edges on which whole windows are dropped."""
        return {(window.stream, window.query): window for window in self.ladder.windows}

    @cached_property
    def query_edges(self) -> Mapping[Edge, int]:
        """Return the edges to queries on which some rung drops, each with the number of its class.

        Edges of a class drop the same share of records, or of the same windows, at any position.
        """
        classes: dict[Any, int] = {}
        result = {}
        for stream, query in sorted(edge for edge in self.ladder.edges if edge[1] != INPUT):
            shape = self.windows.get((stream, query), ())[2:]
            index = [self._index[stream, query], self._index[stream, INPUT]]
            kind = shape, self.parts[index].tobytes()
            result[stream, query] = classes.setdefault(kind, len(classes))
        return result

    @cached_property
    def query_streams(self) -> frozenset[int]:
        """Return the streams with edges to queries on which some rung drops."""
        return frozenset(stream for stream, _ in self.query_edges)

    @cached_property
    def _input(self) -> Floats:
        """Return minus the inverse of the factor of each position from 0, which rises."""
        factors = [rung.factor for rung in self.ladder.rungs]
        # Position 0 is below the first rung, also if that drops without overload.
        start = _NO_OVERLOAD if factors[0] > _NO_OVERLOAD else factors[0] / 2
        return -1 / np.array([start, *factors])

    def factor_of(self, position: float) -> float:
        """Return the input factor for which a position is the optimal plan.

        Between two rungs, optimal kept parts are affine in 1 / factor (algorithms.shedding.rungs).
        """
        return float(-1 / np.interp(position, np.arange(self.rungs + 1), self._input))

    def position_of(self, factor: float) -> float:
        """Return the position whose input factor is `factor`, the nearest one beyond the ends."""
        if factor <= 0:
            return 0.0
        return float(np.interp(-1 / factor, self._input, np.arange(self.rungs + 1)))


class _Identity:
    """A ladder that equals itself only: comparing two of 200,000 costs takes a part of a batch."""

    def __init__(self, ladder: Ladder) -> None:
        self.ladder = ladder

    def __hash__(self) -> int:
        return id(self.ladder)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.ladder is self.ladder


@lru_cache(maxsize=2)
def _compiled(identity: _Identity) -> CompiledLadder:
    return CompiledLadder(identity.ladder)


def compiled_ladder(ladder: Ladder) -> CompiledLadder:
    """Return a ladder compiled; the routing tables that follow each other share one ladder."""
    return _compiled(_Identity(ladder))


def rates_of(streams: Sequence[int], rates: Mapping[int, float]) -> Floats:
    """Return rates in the order of `streams`, 0 for those without one."""
    return np.array([rates.get(stream, 0.0) for stream in streams], np.float64)
