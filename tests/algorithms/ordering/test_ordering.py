"""Every prefix of an order is no worse than the start, wherever the greedy order says so."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem
from algorithms.ordering import SLACK, MoveSet, Order, WorkUnits, order_moves
from tests.algorithms.ordering.instances import (
    Instance,
    Loads,
    UnitMove,
    WorkUnit,
    drawn,
    in_rounds,
    make_move,
    move_set,
    ordered,
)

units = st.builds(
    WorkUnit,
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
    rates: list[float], placed: list[tuple[WorkUnit, int, int]], capacities: list[float]
) -> None:
    units, here, there = zip(*placed, strict=True) if placed else ((), (), ())
    check(Instance(rates, capacities, list(units), list(here), list(there)))


@pytest.mark.parametrize("seed", range(12))
def test_measures_of_larger_instances_are_those_of_each_prefix(seed: int) -> None:
    check(drawn(seed))


def check(instance: Instance) -> Order:
    """Order the moves of an instance, and recompute every prefix."""
    loads, moves = instance.loads(), instance.moves()
    found = ordered(loads, moves)
    assert sorted(found.order) == list(range(len(moves)))
    shares = instance.prefixes(found)
    assert found.start == pytest.approx(shares[0].max())
    assert found.worst == pytest.approx(shares[1:].max(axis=1))
    assert found.imbalance == pytest.approx(shares[1:].max(axis=1) - shares[1:].mean(axis=1))
    assert found.safe == bool((found.worst <= found.start + SLACK).all())
    assert loads.loads / loads.capacities == pytest.approx(shares[-1])
    return found


@pytest.mark.parametrize("seed", range(40))
def test_each_move_is_of_the_worst_node_that_has_a_safe_one(seed: int) -> None:
    """Recomputed for every move: else the least harm is done, and only where none is safe."""
    instance = drawn(seed, nodes=5, units=30)
    moves, left = instance.moves(), set(range(len(instance.moves())))
    loads, capacities = instance.loads(), np.array(instance.capacities)
    found = order_moves(move_set(loads, moves))
    for at in found.order:
        shares = loads.loads / capacities
        after = {
            other: (loads.loads[move.target] + loads.added(move.unit, move.target))
            / capacities[move.target]
            for other in left
            for move in (moves[other],)
        }
        safe = [other for other in left if after[other] <= found.start + SLACK]
        if safe:
            source = moves[at].source
            assert shares[source] >= max(shares[moves[other].source] for other in safe) - SLACK
            safe = [other for other in safe if moves[other].source == source]
        assert after[at] == pytest.approx(min(after[other] for other in safe or left))
        make_move(loads, moves[at])
        left.remove(at)


def test_it_is_no_worse_than_the_rounds_of_before() -> None:
    """Over random instances, each prefix recomputed from scratch: the largest imbalance.

    The state before the first move counts, too: nobody can avoid it.
    """
    largest: list[tuple[float, float]] = []
    for seed in range(60):
        instance = drawn(seed, nodes=5, units=30)
        found = check(instance)
        before = replace(found, order=tuple(in_rounds(instance)))
        both = [instance.prefixes(order) for order in (before, found)]
        largest.append(tuple((p.max(axis=1) - p.mean(axis=1)).max() for p in both))
    before, now = np.array(largest).T
    assert now.mean() <= before.mean()
    assert (now <= before + SLACK).mean() >= 0.95


def test_arrays_and_units_give_the_same_order() -> None:
    """Read as a snapshot is: rows of sources, the units that move, and their targets."""
    instance = drawn(5)
    units_ = [replace(unit, load=0.0) for unit in instance.units]
    instance = replace(instance, units=units_)
    lengths = [len(unit.sources) for unit in instance.units]
    units = WorkUnits(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.array([source for unit in instance.units for source in unit.sources], np.int64),
        np.array(instance.here, np.int64),
    )
    moving = np.array(instance.moving, np.int64)
    targets = np.array(instance.there, np.int64)[moving]
    moves = MoveSet.from_units(instance.rates, instance.capacities, units, moving, targets)
    assert len(moves.targets) == len(instance.moving)
    found, other = order_moves(moves), ordered(instance.loads(), instance.moves())
    assert found.order == other.order
    assert found.imbalance == pytest.approx(other.imbalance)


def test_no_moves_are_in_order() -> None:
    found = ordered(Loads([1.0], [2.0], [(WorkUnit((0,)), 0)]), [])
    assert (found.order, found.start, found.safe) == ((), 0.5, True)


def test_a_full_node_is_emptied_before_it_takes() -> None:
    """Given the other way round, node 1 would have 12 of 10."""
    small, large = WorkUnit(load=4.0), WorkUnit(load=6.0)
    here = [(small, 0), (large, 1), (WorkUnit(load=2.0), 1)]
    moves = [UnitMove(small, 0, 1), UnitMove(large, 1, 2)]
    found = ordered(Loads([], [10.0, 10.0, 10.0], here), moves)
    assert found.order == (1, 0)
    assert found.safe
    assert found.worst.tolist() == pytest.approx([0.6, 0.6])


def test_what_has_no_safe_order_is_done_with_least_harm() -> None:
    """Two full nodes swap: one of them must be overfull for a while, and it is said."""
    first, second = WorkUnit(load=9.0), WorkUnit(load=8.0)
    moves = [UnitMove(first, 0, 1), UnitMove(second, 1, 0)]
    found = ordered(Loads([], [10.0, 10.0], [(first, 0), (second, 1)]), moves)
    assert not found.safe
    assert found.start == pytest.approx(0.9)
    assert found.worst.tolist() == pytest.approx([1.7, 0.9])


def test_a_node_without_capacity_is_refused() -> None:
    with pytest.raises(BadProblem, match="above 0"):
        Loads([1.0], [0.0], [])
