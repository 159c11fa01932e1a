"""Pieces of query types, each on one server, which refinement moves."""

from typing import NamedTuple

import numpy as np

from algorithms.placement.offline.rounds import spread
from algorithms.placement.problem import PlacementProblem
from algorithms.rows import within
from algorithms.vocabulary import Ints, SmallInts

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
