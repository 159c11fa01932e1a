"""States of online algorithms in clusters that host queries already."""

from collections.abc import Sequence

import numpy as np

from algorithms.compiled import compiled
from algorithms.placement import checks
from algorithms.placement.online.board import ARRIVALS, Board, enter
from algorithms.placement.online.pipeline import OnlinePlacement
from algorithms.placement.online.state import OnlineState
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Ints, SmallInts


def state_of(
    algorithm: OnlinePlacement, problem: PlacementProblem, assignment: Sequence[int]
) -> OnlineState:
    """Return the state in which query q of `problem` lives on server `assignment[q]`.

    Raises `BadProblem` on a server that does not exist or a wrong number of assignments.
    """
    homes = checks.checked_assignment(assignment, problem.queries, problem.servers)
    state = OnlineState(
        problem.servers,
        problem.rates,
        with_kinds=algorithm.needs_kinds,
        capacities=problem.capacities,
        room=max(1, len(problem.indices)),
    )
    state.know_types(problem)
    kinds = problem.types.of_query if algorithm.needs_kinds else np.zeros(0, np.int32)
    rows = problem.indptr.copy(), problem.indices.copy(), kinds.copy()
    _enter_all(state.board, *rows, homes)
    state.board.marks[ARRIVALS] = problem.queries
    return state


@compiled
def _enter_all(
    board: Board, indptr: Ints, indices: SmallInts, kinds: SmallInts, homes: SmallInts
) -> None:
    """Count every query on its server; `kinds` may be empty."""
    for query in range(len(homes)):
        kind = int(kinds[query]) if len(kinds) else -1
        enter(board, indices[indptr[query] : indptr[query + 1]], kind, homes[query])
