"""Queries that arrive one by one at a state that is kept."""

from collections.abc import Iterable

from algorithms.placement.online.board import expect
from algorithms.placement.online.pipeline import OnlinePlacement, take
from algorithms.placement.online.server_choice import choose_server
from algorithms.placement.online.state import OnlineState
from algorithms.vocabulary import SmallInts


def choose(algorithm: OnlinePlacement, state: OnlineState, sources: Iterable[int]) -> int:
    """Return the server for an arriving query, without a change of the state.

    Raises `BadProblem` when the query reads nothing or an unknown source, `ValueError` when the
    state does not count query types and the algorithm needs them.
    """
    wanted = state.sources(sources)
    kind = _kind(algorithm, state, wanted)
    state.expect(algorithm.nu, algorithm.alpha)
    expect(state.board)
    return int(choose_server(state.board, algorithm.rule, algorithm.draws_from, wanted, kind))


def place(algorithm: OnlinePlacement, state: OnlineState, sources: Iterable[int]) -> int:
    """Return the server for an arriving query, and count the query in the state.

    Raises as `choose` does.
    """
    return place_sorted(algorithm, state, state.sources(sources))


def place_sorted(algorithm: OnlinePlacement, state: OnlineState, sources: SmallInts) -> int:
    """Place a query whose sources are as `OnlineState.sources` returns them."""
    kind = _kind(algorithm, state, sources)
    state.expect(algorithm.nu, algorithm.alpha)
    state.have_room(len(sources))
    return int(take(state.board, algorithm.rule, algorithm.draws_from, sources, kind))


def _kind(algorithm: OnlinePlacement, state: OnlineState, sources: SmallInts) -> int:
    if not algorithm.needs_kinds:
        return -1
    if not state.with_kinds:
        raise ValueError("this state was made without query types (with_kinds)")
    return state.kind_of(sources)
