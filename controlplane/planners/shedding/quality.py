"""What a ladder keeps of each query, and the quality that it loses, at a position or a factor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controlplane.planners.shedding.inputs import SheddingInput, SheddingQuery
from controlplane.wire.routing.compiled_ladder import compiled_ladder
from controlplane.wire.routing.drop_rules import INPUT, Edge
from controlplane.wire.routing.ladder import Ladder


@dataclass(frozen=True)
class ResultQuality:
    """What is kept: parts of the records of each query by id, of all input records, of the value.

    `quality_lost`: the part of the value of all records, by the weights of queries, that is lost.
    """

    queries: Mapping[int, float]
    input: float
    quality_lost: float

    @property
    def least(self) -> tuple[int, float] | None:
        """Return the query with the least part that is kept, None without queries."""
        return min(self.queries.items(), key=lambda item: item[1], default=None)


def kept_by(
    parts: Mapping[Edge, float], queries: Sequence[SheddingQuery], rates: Mapping[int, float]
) -> ResultQuality:
    """Return what is kept with these parts of edges at these records/s of streams.

    An edge to a query without a part keeps what its input edge keeps.
    """
    kept: dict[int, float] = {}
    value = whole = 0.0
    for query in queries:
        records = sum(rates.get(stream, 0.0) for stream in query.streams)
        kept[query.id] = _kept_of(parts, query, rates)
        value += query.weight * records * kept[query.id]
        whole += query.weight * records
    read = {stream for query in queries for stream in query.streams}
    arrived = sum(rates.get(stream, 0.0) for stream in read)
    entered = sum(rates.get(stream, 0.0) * part_of(parts, stream, INPUT) for stream in read)
    return ResultQuality(
        kept, entered / arrived if arrived else 1.0, 1 - value / whole if whole else 0.0
    )


def _kept_of(
    parts: Mapping[Edge, float], query: SheddingQuery, rates: Mapping[int, float]
) -> float:
    """Return the kept part of a query's records; of a join, the mean of its sides.

    The results of a join are linear in the records of each side, with the window of the other side
    as it is without drops (paper 003, section 3.3).
    """
    sides = [[stream for stream in query.streams if stream not in query.right], query.right]
    means = []
    for streams in filter(None, sides):
        records = sum(rates.get(stream, 0.0) for stream in streams)
        left = sum(rates.get(stream, 0.0) * part_of(parts, stream, query.id) for stream in streams)
        means.append(left / records if records else 1.0)
    return sum(means) / len(means) if means else 1.0


def part_of(parts: Mapping[Edge, float], stream: int, query: int) -> float:
    """Return the part of a stream's records that an edge keeps."""
    return parts.get((stream, query), parts.get((stream, INPUT), 1.0))


def parts_at(ladder: Ladder, position: float) -> dict[Edge, float]:
    """Return the kept part of each edge of a ladder at a position, interpolated between rungs."""
    compiled = compiled_ladder(ladder)
    return {edge: compiled.part(edge, position) for edge in ladder.edges}


def kept_at_factor(ladder: Ladder | None, given: SheddingInput, factor: float) -> ResultQuality:
    """Return what a ladder keeps at an input factor; without a ladder, nothing is dropped."""
    if ladder is None:
        return kept_by({}, given.queries, given.rates)
    parts = parts_at(ladder, compiled_ladder(ladder).position_of(factor))
    return kept_by(parts, given.queries, given.rates)
