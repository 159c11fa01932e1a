"""The subset that a budget allows: measured from scratch, and against every subset there is."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem
from algorithms.subset import SubsetProblem, Value, choose
from tests.algorithms.ordering.instances import Loads, UnitMove, WorkUnit, move_set

NODES, SOURCES = 3, 6
units = st.builds(
    WorkUnit,
    st.sets(st.integers(0, SOURCES - 1), max_size=3).map(tuple),
    st.sampled_from([0.0, 0.0, 3.0]),
)
node = st.integers(0, NODES - 1)
places = st.lists(st.tuples(units, node, node, st.integers(0, 9)), min_size=1, max_size=9)
rates = st.lists(st.floats(0.5, 9), min_size=SOURCES, max_size=SOURCES)
Placed = list[tuple[WorkUnit, int, int, int]]


def problem_of(placed: Placed, given_rates: list[float], share: float) -> SubsetProblem:
    """Return a problem with a share of the plan's bytes and 3/4 of its moves as the budget."""
    moving = [one for one in placed if one[1] != one[2]]
    costs = np.array([[float(size), 1.0] for *_, size in moving]).reshape(len(moving), 2)
    return SubsetProblem(
        move_set(
            Loads(given_rates, [20.0] * NODES, [(unit, at) for unit, at, _, _ in placed]),
            [UnitMove(unit, source, target) for unit, source, target, _ in moving],
        ),
        costs,
        [share * costs[:, 0].sum(), 0.75 * len(moving)],
    )


def loads_of(placed: Placed, given_rates: list[float], chosen: tuple[int, ...]) -> Any:
    """Return records/s per node from scratch: each source once per node."""
    moving = [number for number, one in enumerate(placed) if one[1] != one[2]]
    made = {moving[at] for at in chosen}
    loads = np.zeros(NODES)
    for at in range(NODES):
        mine = [
            unit
            for number, (unit, before, after, _) in enumerate(placed)
            if (after if number in made else before) == at
        ]
        sources = {source for unit in mine for source in unit.sources}
        loads[at] = sum(given_rates[s] for s in sources) + sum(unit.load for unit in mine)
    return loads


@settings(max_examples=60, deadline=None)
@given(placed=places, given_rates=rates, share=st.floats(0, 1))
def test_what_is_chosen_is_within_the_budget_and_measured_rightly(
    placed: Placed, given_rates: list[float], share: float
) -> None:
    """Budget, loads, traffic and imbalance are counted again, from the units alone."""
    problem = problem_of(placed, given_rates, share)
    found = choose(problem)
    spent = problem.costs[np.array(found.chosen, np.int64)].sum(axis=0)
    assert (spent <= problem.limits + 1e-6).all()
    loads = loads_of(placed, given_rates, found.chosen)
    shares = loads / 20.0
    assert found.value.traffic == pytest.approx(loads.sum(), abs=1e-5)
    assert found.value.imbalance == pytest.approx(shares.max() - shares.mean(), abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(placed=places, given_rates=rates, share=st.floats(0.1, 0.9))
def test_no_subset_is_better(placed: Placed, given_rates: list[float], share: float) -> None:
    """Against all of them; where it is told that none is better, none is, and bounds hold."""
    problem = problem_of(placed, given_rates, share)
    found = choose(problem)
    best = min(_all_values(problem))
    everything = len(found.chosen) == problem.count
    if not everything:
        assert found.value.excess == best.excess
        assert found.value.traffic <= best.traffic * 1.001 + 1e-6
        assert found.proven
        assert found.imbalance_bound is not None
        assert found.traffic_bound is not None
        assert found.traffic_bound <= found.value.traffic + 1e-6


def _all_values(problem: SubsetProblem) -> list[Value]:
    every = (np.array(bits, np.bool_) for bits in product([False, True], repeat=problem.count))
    return [problem.value(one) for one in every if problem.affordable(one)]


def test_all_is_made_where_all_can_be_afforded() -> None:
    """A planner has its reasons: what fits the budget is not mended."""
    units_ = [WorkUnit((0,)), WorkUnit((1,))]
    problem = SubsetProblem(
        move_set(
            Loads([1.0, 2.0], [10.0, 10.0], [(units_[0], 0), (units_[1], 0)]),
            [UnitMove(unit, 0, 1) for unit in units_],
        ),
        np.ones((2, 1)), [2.0],
    )  # fmt: skip
    assert choose(problem).chosen == (0, 1)


def test_readers_of_a_source_go_together() -> None:
    """One of them alone gains nothing: the greedy runs know that, too, and it is not a prefix."""
    lonely, first, second = WorkUnit((0,)), WorkUnit((1,)), WorkUnit((1,))
    stays = WorkUnit((1,))
    here = [(lonely, 0), (first, 0), (second, 0), (stays, 1)]
    moves = [UnitMove(one, 0, 1) for one in (lonely, first, second)]
    problem = SubsetProblem(
        move_set(Loads([1.0, 5.0], [20.0, 20.0], here), moves), np.ones((3, 1)), [2.0]
    )
    for exact in (True, False):
        assert choose(problem, exact=exact).chosen == (1, 2)


def test_the_same_problem_has_the_same_answer() -> None:
    random = np.random.default_rng(3)
    placed = [
        (WorkUnit(tuple(random.choice(SOURCES, 2, replace=False).tolist())), *pair, int(size))
        for pair, size in zip(
            random.integers(0, NODES, (40, 2)).tolist(), random.integers(1, 9, 40), strict=True
        )
    ]
    found = [choose(problem_of(placed, [3.0] * SOURCES, 0.3)) for _ in range(2)]
    assert found[0] == found[1]


def test_a_cost_below_nothing_is_refused() -> None:
    with pytest.raises(BadProblem):
        SubsetProblem(
            move_set(Loads([], [1.0], []), [UnitMove(WorkUnit(), 0, 0)]), np.array([[-1.0]]), [1.0]
        )
