"""Moves in order are the moves that were given, and the imbalance of each prefix is measured."""

from typing import Any

import pytest

from controlplane.planning.execution_plan import in_order, singles
from controlplane.planning.measures import measures
from tests.controlplane.planning.drawn import drawn, gathered


def keys(moves: Any) -> list[tuple[int, int]]:
    return sorted((move["query"], move.get("first", 0)) for move in moves)


@pytest.mark.parametrize("seed", range(5))
def test_the_path_is_the_imbalance_of_every_prefix(seed: int) -> None:
    """Of queries and of tasks of a split query, which share no stream."""
    snapshot = drawn(seed)
    number = snapshot.split[0][0]
    several = {"query": number, "name": "split", "first": 2, "past": 4, "from": 1, "to": 2}
    moves = [*gathered(snapshot), several]
    found = in_order(snapshot, moves)
    assert keys(found.moves) == keys(singles(moves))
    for count, imbalance in enumerate(found.path, start=1):
        measured = measures(snapshot, found.moves[:count])["imbalance"]
        assert imbalance == pytest.approx(measured, abs=2e-6)


def test_no_moves_are_an_empty_path() -> None:
    found = in_order(drawn(0), [])
    assert (found.moves, found.path, found.safe) == ([], [], True)


def test_a_move_of_an_unknown_query_is_an_error() -> None:
    with pytest.raises(KeyError):
        in_order(drawn(0), [{"query": 999, "name": "x", "from": 0, "to": 1}])
