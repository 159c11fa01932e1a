"""Servers that join a simulated cluster, and servers that leave it with their queries."""

import numpy as np

from algorithms.compiled import compiled
from algorithms.errors import BadProblem
from algorithms.placement.bits import exclude
from algorithms.placement.online.board import ACTIVE, LIVE, Board
from algorithms.placement.online.incidence import Incidence, with_words
from algorithms.placement.online.state import OnlineState
from algorithms.vocabulary import Ints


def add_server(state: OnlineState, capacity: float = 1.0) -> int:
    """Add a server and return its number: the lowest that no active server has."""
    free = np.flatnonzero(~state.board.active)
    number = int(free[0]) if len(free) else len(state.board.active)
    activate(state, number, capacity)
    return number


def activate(state: OnlineState, server: int, capacity: float = 1.0) -> None:
    """Add the server of this number, which must not be active."""
    if server >= len(state.board.active):
        state.board = _widen(state.board, server + 1)
    if state.board.active[server]:
        raise BadProblem("server", f"{server} is there already")
    state.board.active[server] = True
    state.board.capacities[server] = capacity
    state.board.marks[ACTIVE] += 1
    state.forget_slack()


def remove_server(state: OnlineState, server: int) -> None:
    """Remove a server with its queries. Raises `BadProblem` for the last one."""
    check_removable(state, server)
    _clear_server(state.board, server)
    state.board.active[server] = False
    state.board.marks[ACTIVE] -= 1
    state.forget_slack()


def check_removable(state: OnlineState, server: int) -> None:
    """Raise `BadProblem` unless the server is active and not the last one."""
    state.check_server(server)
    if state.servers == 1:
        raise BadProblem("server", "the last server cannot be removed")


@compiled
def _clear_server(board: Board, server: int) -> None:
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


def _widen(board: Board, servers: int) -> Board:
    """Return the board with more server numbers; the added ones are inactive."""
    more = servers - len(board.loads)
    words = -(-servers // 64)
    return board._replace(
        sources=with_words(board.sources, words),
        kinds=with_words(board.kinds, words),
        kind_totals=np.pad(board.kind_totals, (0, more)),
        loads=np.pad(board.loads, (0, more)),
        traffic=np.pad(board.traffic, ((0, 0), (0, more))),
        active=np.pad(board.active, (0, more)),
        capacities=np.pad(board.capacities, (0, more), constant_values=1.0),
        open=np.pad(board.open, (0, words - len(board.open))),
    )
