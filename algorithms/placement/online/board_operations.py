"""Operations on a whole board: fill, widen, clear a server."""

import numpy as np

from algorithms.compiled import compiled
from algorithms.placement.bits import exclude
from algorithms.placement.online.board import LIVE, Board, enter, record
from algorithms.placement.online.incidence import Incidence, counted, restrided
from algorithms.vocabulary import Ints, SmallInts


@compiled
def enter_all(
    board: Board, indptr: Ints, indices: SmallInts, kinds: SmallInts, homes: SmallInts
) -> None:
    """Count every query on its server; `kinds` may be empty."""
    for query in range(len(homes)):
        kind = int(kinds[query]) if len(kinds) else -1
        enter(board, indices[indptr[query] : indptr[query + 1]], kind, homes[query])


@compiled
def enter_counts(board: Board, rows: Ints) -> None:
    """Enter how many queries of a server read a source, int64[r, 3]: server, source, queries."""
    for index in range(len(rows)):
        server, source, queries = rows[index]
        if queries > 0:
            record(board, source, server, queries)


@compiled
def least_count(board: Board, sources: SmallInts, server: int) -> int:
    """Return the most queries of the server that can read all these sources."""
    holds, keys, counts, _ = board.sources
    least = board.loads[server]
    for source in sources:
        least = min(least, counted(holds, keys, counts, source, server))
    return int(least)


@compiled
def clear_server(board: Board, server: int) -> None:
    """Remove all queries of a server."""
    _clear_counts(board.sources, server, board.readers)
    _clear_counts(board.kinds, server, np.zeros(0, np.int64))
    board.marks[LIVE] -= board.loads[server]
    board.loads[server] = 0
    board.kind_totals[server] = 0
    board.traffic[:, server] = 0.0
    exclude(board.open, server)


@compiled
def _clear_counts(incidence: Incidence, server: int, readers: Ints) -> None:
    holds, keys, counts, _ = incidence
    stride = holds.shape[1] << 6
    for slot in range(len(keys)):
        if counts[slot] > 0 and keys[slot] % stride == server:
            if len(readers):
                readers[keys[slot] // stride] -= counts[slot]
            counts[slot] = 0
    for row in range(len(holds)):
        exclude(holds[row], server)


def widened(board: Board, servers: int) -> Board:
    """Return the board with more server numbers; the added ones are inactive."""
    more = servers - len(board.loads)
    words = -(-servers // 64)
    return board._replace(
        sources=restrided(board.sources, words),
        kinds=restrided(board.kinds, words),
        kind_totals=np.pad(board.kind_totals, (0, more)),
        loads=np.pad(board.loads, (0, more)),
        traffic=np.pad(board.traffic, ((0, 0), (0, more))),
        active=np.pad(board.active, (0, more)),
        capacities=np.pad(board.capacities, (0, more), constant_values=1.0),
        open=np.pad(board.open, (0, words - len(board.open))),
    )
