"""Every prefix of an order is no worse than the start, wherever the greedy order says so."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem
from algorithms.ordering import SLACK, Loads, Move, Unit, ordered


def shares_of(rates: Any, capacities: Any, placed: list[tuple[Unit, int]]) -> Any:
    """Return load/capacity per node from scratch: each source once per node."""
    loads = np.zeros(len(capacities))
    for node in range(len(capacities)):
        mine = [unit for unit, at in placed if at == node]
        sources = {source for unit in mine for source in unit.sources}
        loads[node] = sum(rates[s] for s in sources) + sum(unit.load for unit in mine)
    return loads / np.array(capacities)


units = st.builds(
    Unit,
    st.sets(st.integers(0, 5), max_size=3).map(tuple),
    st.sampled_from([0.0, 1.0, 2.5]),
)


@settings(max_examples=80, deadline=None)
@given(
    rates=st.lists(st.floats(0.1, 9), min_size=6, max_size=6),
    placed=st.lists(st.tuples(units, st.integers(0, 3), st.integers(0, 3)), max_size=14),
    capacities=st.lists(st.floats(0.5, 4), min_size=4, max_size=4),
)
def test_measures_are_those_of_each_prefix(
    rates: list[float], placed: list[tuple[Unit, int, int]], capacities: list[float]
) -> None:
    where = [(unit, source) for unit, source, _ in placed]
    moving = [at for at, (_, source, target) in enumerate(placed) if source != target]
    moves = [Move(*placed[at]) for at in moving]
    found = ordered(Loads(rates, capacities, where), moves)
    assert sorted(found.order) == list(range(len(moves)))
    start = shares_of(rates, capacities, where).max()
    assert found.start == pytest.approx(start)
    for step, at in enumerate(found.order):
        where[moving[at]] = (moves[at].unit, moves[at].target)
        shares = shares_of(rates, capacities, where)
        assert found.worst[step] == pytest.approx(shares.max())
        assert found.imbalance[step] == pytest.approx(shares.max() - shares.mean())
    assert found.safe == bool((found.worst <= found.start + SLACK).all())


def test_a_full_node_is_emptied_before_it_takes() -> None:
    """Given the other way round, node 1 would have 12 of 10."""
    small, large = Unit(load=4.0), Unit(load=6.0)
    here = [(small, 0), (large, 1), (Unit(load=2.0), 1)]
    moves = [Move(small, 0, 1), Move(large, 1, 2)]
    found = ordered(Loads([], [10.0, 10.0, 10.0], here), moves)
    assert found.order == (1, 0)
    assert found.safe
    assert found.worst.tolist() == pytest.approx([0.6, 0.6])


def test_what_has_no_safe_order_is_done_with_least_harm() -> None:
    """Two full nodes swap: one of them must be overfull for a while, and it is said."""
    first, second = Unit(load=9.0), Unit(load=8.0)
    moves = [Move(first, 0, 1), Move(second, 1, 0)]
    found = ordered(Loads([], [10.0, 10.0], [(first, 0), (second, 1)]), moves)
    assert not found.safe
    assert found.start == pytest.approx(0.9)
    assert found.worst.tolist() == pytest.approx([1.7, 0.9])


def test_a_node_without_capacity_is_refused() -> None:
    with pytest.raises(BadProblem, match="above 0"):
        Loads([1.0], [0.0], [])
