"""The annealing field of a placement cut into pieces."""

import numpy as np

from algorithms.placement.problem import PlacementProblem
from algorithms.placement.refine.annealing import TABLE, Field
from algorithms.placement.refine.pieces import Pieces
from algorithms.rows import grouped, picked, within
from algorithms.vocabulary import Ints, SmallInts

# Sources with more readers than this have their readers counted per server; for the others,
# looking through the few readers is as fast and needs no memory.
_FEW_READERS = 4


def laid_out(problem: PlacementProblem, pieces: Pieces) -> Field:
    """Return the field with every piece on its server of `pieces`; it shares no memory."""
    types = problem.types
    indptr, entries = picked(types.indptr, pieces.kinds)
    indices = types.indices[entries]
    owner = np.repeat(np.arange(len(pieces.kinds), dtype=np.int32), np.diff(indptr))
    spans, order = grouped(indices, len(problem.rates))
    row, counts = _counted(problem, np.diff(spans), indices, pieces.servers[owner])
    hosted, starts, numbers, position = _hosted(problem, pieces.servers)
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


def _counted(
    problem: PlacementProblem, read_by: Ints, indices: SmallInts, servers: SmallInts
) -> tuple[Ints, SmallInts]:
    """Return the row of each source with many readers, and its readers on each server."""
    popular = read_by > _FEW_READERS
    row = np.where(popular, np.cumsum(popular) - 1, -1)
    counts = np.zeros((int(popular.sum()), problem.servers), np.int32)
    counted = popular[indices]
    np.add.at(counts, (row[indices[counted]], servers[counted]), 1)
    return row.astype(np.int64), counts


def _hosted(
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
