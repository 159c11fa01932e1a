"""Annealing of a placement: pieces move to other readers of their sources, within the caps.

A piece has queries of one type on one server. The traffic counts a source on a server once,
however many pieces read it there, so a move that takes the last but one reader away seems worth
nothing. What is annealed instead is the sum over sources and servers of rate times
readers ** power, for a power that falls to 0, where it is the traffic: on the way there, gathering
the readers of a source pays before the last one has moved.
"""

from typing import NamedTuple

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.placement.offline.rounds import spread
from algorithms.placement.problem import PlacementProblem
from algorithms.random_numbers import Words, below, unit
from algorithms.rows import group_positions, pick_rows, within
from algorithms.vocabulary import Floats, Ints, SmallInts

# A server holds at least so many pieces when full: large types stay easy to pack and to regroup.
_PIECES_PER_SERVER = 64


class Pieces(NamedTuple):
    """A placement cut into pieces; p pieces.

    `kinds` int32[p]: the query type. `sizes` int64[p]: queries. `servers` int32[p].
    """

    kinds: SmallInts
    sizes: Ints
    servers: SmallInts


def cut(problem: PlacementProblem, assignment: SmallInts) -> Pieces:
    """Cut a placement into pieces of one type on one server, none of them large."""
    # Queries by type and server.
    cells = problem.types.of_query.astype(np.int64) * problem.servers + assignment
    distinct, sizes = np.unique(cells, return_counts=True)
    kinds, servers = np.divmod(distinct, problem.servers)
    largest = max(1, int(problem.caps.max(initial=1)) // _PIECES_PER_SERVER)
    pieces = -(-sizes // largest)
    owner = np.repeat(np.arange(len(sizes)), pieces)
    # As even as can be: the first few pieces of a part take one query more.
    shares = sizes[owner] // pieces[owner] + (within(pieces) < sizes[owner] % pieces[owner])
    return Pieces(kinds[owner].astype(np.int32), shares, servers[owner].astype(np.int32))


def assignment_of(problem: PlacementProblem, pieces: Pieces) -> SmallInts:
    """Return the server of each query, int32[n]; a type's first queries go to its first pieces."""
    given = np.stack([pieces.kinds, pieces.servers, pieces.sizes], axis=1).astype(np.int64)
    return spread(problem, given)


# Readers beyond this count change the power sum by next to nothing.
TABLE = 1024
_NONE = -1
# Sources with more readers than this have their readers counted per server; for the others,
# looking through the few readers is as fast and needs no memory.
_FEW_READERS = 4


class Field(NamedTuple):
    """The state of the annealing; p pieces, m sources, k servers.

    `rates` float64[m]; sources of a piece by rows `indptr` int64[p + 1], `indices` int32[...];
    pieces of a source by rows `spans` int64[m + 1], `readers` int32[...]; `sizes` int64[p];
    `servers` int32[p]; `caps`, `loads` int64[k]; `row` int64[m] the row in `counts` or -1;
    `counts` int32[rows, k] pieces on a server that read the source; `hosted` int32[k, ...] the
    pieces of each server, `starts` int64[k] where they begin, `numbers` int64[k] how many,
    `position` int32[p] a piece's place among them; `gain` float64[TABLE] what one more reader adds.
    """

    rates: Floats
    indptr: Ints
    indices: SmallInts
    spans: Ints
    readers: SmallInts
    sizes: Ints
    servers: SmallInts
    caps: Ints
    loads: Ints
    row: Ints
    counts: SmallInts
    hosted: SmallInts
    starts: Ints
    numbers: Ints
    position: SmallInts
    gain: Floats


def lay_out(problem: PlacementProblem, pieces: Pieces) -> Field:
    """Return the field with every piece on its server of `pieces`; it shares no memory."""
    types = problem.types
    indptr, entries = pick_rows(types.indptr, pieces.kinds)
    indices = types.indices[entries]
    owner = np.repeat(np.arange(len(pieces.kinds), dtype=np.int32), np.diff(indptr))
    spans, order = group_positions(indices, len(problem.rates))
    row, counts = _count_readers(problem, np.diff(spans), indices, pieces.servers[owner])
    hosted, starts, numbers, position = _list_hosted(problem, pieces.servers)
    loads = np.bincount(pieces.servers, weights=pieces.sizes, minlength=problem.servers)
    return Field(
        rates=problem.rates.copy(),
        indptr=indptr,
        indices=indices,
        spans=spans,
        readers=owner[order],
        sizes=pieces.sizes.copy(),
        servers=pieces.servers.copy(),
        caps=problem.caps.copy(),
        loads=loads.astype(np.int64),
        row=row,
        counts=counts,
        hosted=hosted,
        starts=starts,
        numbers=numbers,
        position=position,
        gain=np.zeros(TABLE),
    )


def _count_readers(
    problem: PlacementProblem, read_by: Ints, indices: SmallInts, servers: SmallInts
) -> tuple[Ints, SmallInts]:
    """Return the row of each source with many readers, and its readers on each server."""
    popular = read_by > _FEW_READERS
    row = np.where(popular, np.cumsum(popular) - 1, -1)
    counts = np.zeros((int(popular.sum()), problem.servers), np.int32)
    counted = popular[indices]
    np.add.at(counts, (row[indices[counted]], servers[counted]), 1)
    return row.astype(np.int64), counts


def _list_hosted(
    problem: PlacementProblem, servers: SmallInts
) -> tuple[SmallInts, Ints, Ints, SmallInts]:
    """Return the pieces of each server, where they start, how many, and each one's place."""
    numbers = np.bincount(servers, minlength=problem.servers).astype(np.int64)
    # One place more than a server can need: an exchange adds its piece before it removes one.
    room = np.minimum(problem.caps, len(servers)) + 1
    starts = np.cumsum(room) - room
    order = np.argsort(servers, kind="stable")
    position = np.empty(len(servers), np.int32)
    position[order] = within(numbers)
    hosted = np.zeros(int(room.sum()), np.int32)
    hosted[starts[servers] + position] = np.arange(len(servers))
    return hosted, starts, numbers, position


@compiled
def set_power(field: Field, power: float) -> None:
    """Have one more reader on top of c add (c + 1) ** power - c ** power; 0 is the traffic."""
    field.gain[0] = 1.0
    for count in range(1, TABLE):
        grown = (count + 1.0) ** power - float(count) ** power
        field.gain[count] = grown if power > 0.0 else 0.0


@compiled
def anneal(field: Field, state: Words, temperature: float, steps: int) -> float:
    """Try `steps` moves at one temperature and power; return by how much the traffic changed.

    The field is taken apart once and the helpers are compiled into this function: numba counts
    references whenever an array is reached through a tuple, at more cost than the step itself.
    """
    rates, indptr, indices, spans, readers, sizes, host, caps, loads = field[:9]
    row, counts, hosted, starts, numbers, position, gain = field[9:]
    change = 0.0
    for _ in range(steps):
        piece = below(state, len(sizes))
        home, target = host[piece], _attracting(state, piece, indptr, indices, spans, readers, host)
        if target == home:
            continue
        worth, traffic = _worth(
            piece, home, target, rates, indptr, indices, spans, readers, host, row, counts, gain
        )
        other = _NONE
        if loads[target] + sizes[piece] > caps[target]:
            other = hosted[starts[target] + below(state, numbers[target])]
            growth = sizes[piece] - sizes[other]
            if loads[target] + growth > caps[target] or loads[home] - growth > caps[home]:
                continue
            # As if the two shared no source; what the exchange does is counted exactly below.
            worth += _worth(
                other, target, home, rates, indptr, indices, spans, readers, host, row, counts, gain
            )[0]
        if worth > 0.0 and (temperature <= 0.0 or unit(state) >= np.exp(-worth / temperature)):
            continue
        _move(piece, home, target, indptr, indices, row, counts, host, sizes, loads)
        _rehost(piece, home, target, hosted, starts, numbers, position)
        change += traffic
        if other != _NONE:
            change += _worth(
                other, target, home, rates, indptr, indices, spans, readers, host, row, counts, gain
            )[1]
            _move(other, target, home, indptr, indices, row, counts, host, sizes, loads)
            _rehost(other, target, home, hosted, starts, numbers, position)
    return change


@inlined
def _attracting(
    state: Words,
    piece: int,
    indptr: Ints,
    indices: SmallInts,
    spans: Ints,
    readers: SmallInts,
    host: SmallInts,
) -> int:
    """Return the server of a random reader of one of the piece's sources."""
    first = indptr[piece]
    source = indices[first + below(state, indptr[piece + 1] - first)]
    first = spans[source]
    return int(host[readers[first + below(state, spans[source + 1] - first)]])


@inlined
def _worth(
    piece: int,
    home: int,
    target: int,
    rates: Floats,
    indptr: Ints,
    indices: SmallInts,
    spans: Ints,
    readers: SmallInts,
    host: SmallInts,
    row: Ints,
    counts: SmallInts,
    gain: Floats,
) -> tuple[float, float]:
    """Return the change of a move: of the annealed sum, and of the traffic."""
    surrogate, traffic = 0.0, 0.0
    for slot in range(indptr[piece], indptr[piece + 1]):
        source = indices[slot]
        here, there = 0, 0
        if row[source] >= 0:
            here, there = counts[row[source], home], counts[row[source], target]
        else:
            for other in range(spans[source], spans[source + 1]):
                server = host[readers[other]]
                here += server == home
                there += server == target
        added = gain[min(there, TABLE - 1)] - gain[min(here, TABLE) - 1]
        surrogate += rates[source] * added
        traffic += rates[source] * (int(there == 0) - int(here == 1))
    return surrogate, traffic


@inlined
def _move(
    piece: int,
    home: int,
    target: int,
    indptr: Ints,
    indices: SmallInts,
    row: Ints,
    counts: SmallInts,
    host: SmallInts,
    sizes: Ints,
    loads: Ints,
) -> None:
    for slot in range(indptr[piece], indptr[piece + 1]):
        counted = row[indices[slot]]
        if counted >= 0:
            counts[counted, home] -= 1
            counts[counted, target] += 1
    host[piece] = target
    loads[home] -= sizes[piece]
    loads[target] += sizes[piece]


@inlined
def _rehost(
    piece: int,
    home: int,
    target: int,
    hosted: SmallInts,
    starts: Ints,
    numbers: Ints,
    position: SmallInts,
) -> None:
    """Replace the leaving piece in its home's list by the last one; add it to the target's."""
    numbers[home] -= 1
    last = hosted[starts[home] + numbers[home]]
    hosted[starts[home] + position[piece]] = last
    position[last] = position[piece]
    position[piece] = numbers[target]
    hosted[starts[target] + numbers[target]] = piece
    numbers[target] += 1
