from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from algorithms.errors import NotProven
from algorithms.shedding.fair_rungs import fair_flows, plan_fair_rungs
from algorithms.shedding.problem import SheddingProblem
from algorithms.shedding.rungs import LadderEnd, last_feasible_factor
from tests.algorithms.shedding.networks import chain_network, crossed, fan_out, problem, problems


def test_equal_queries_keep_equal_parts_on_every_rung() -> None:
    """The optimum of the throughput would drop the expensive chain first."""
    ladder = plan_fair_rungs(problem(chain_network([[1.0], [3.0]]), 1, 1), 4.0)
    assert [rung.factor for rung in ladder.rungs] == pytest.approx([0.25, 4.0])
    assert ladder.rungs[0].kept == {"i1": 1.0, "i2": 1.0}
    assert ladder.rungs[1].kept == pytest.approx({"i1": 1 / 16, "i2": 1 / 16})
    assert ladder.kept(1.0) == pytest.approx({"i1": 1 / 4, "i2": 1 / 4})


def test_a_rung_stands_where_a_query_begins_to_lose_records() -> None:
    plain = chain_network([[1.0], [1.0]])
    weighted = problem(replace(plain, outputs={"n1_q1": 1.0, "n1_q2": 3.0}), 1, 1)
    ladder = plan_fair_rungs(weighted, 2.0)
    # Up to a factor of 3 / 4 the heavier one keeps all; then both keep parts of 1 to 3.
    assert ladder.kept(0.75) == pytest.approx({"i1": 1 / 3, "i2": 1.0}, abs=0.01)
    assert ladder.kept(2.0) == pytest.approx({"i1": 1 / 8, "i2": 3 / 8})
    assert ladder.loss <= 1e-3


def test_floors_end_the_ladder() -> None:
    plain = fan_out([1.0, 1.0])
    floors = problem(replace(plain, floors={"b1": 0.5}), 1.0)
    ladder = plan_fair_rungs(floors, 40.0)
    last = last_feasible_factor(floors.model, floors.vector)
    assert ladder.end == LadderEnd.FLOORS
    assert ladder.rungs[-1].factor == pytest.approx(last)
    assert ladder.rungs[-1].outcome.kept["b1"] == pytest.approx(0.5, abs=1e-6)


def test_no_rungs_without_an_overload() -> None:
    assert plan_fair_rungs(problem(crossed(64, 32), 1, 1), 2.0).rungs == ()


@settings(deadline=None, max_examples=12)
@given(problems())
def test_plans_between_rungs_are_feasible_and_fair(drawn: SheddingProblem) -> None:
    rates = [max(rate, 0.1) if rate > 0 else 0.0 for rate in drawn.vector.tolist()]
    base = problem(drawn.network, *rates)
    model = base.model
    try:
        ladder = plan_fair_rungs(base, 20.0)
    except NotProven:
        return
    if len(ladder.rungs) < 2:
        return
    first, last = ladder.rungs[0].factor, ladder.rungs[-1].factor
    has_results = (model.weights > 0) & (model.results @ model.unshed(base.vector) > 1e-9)
    for factor in np.geomspace(first, last, 4).tolist():
        vector, kept = factor * base.vector, ladder.kept(factor)
        unshed = model.unshed(vector)
        flows = np.array([kept[name] for name in model.network.locations]) * unshed
        assert (model.loads @ flows <= model.capacities * (1 + 1e-6)).all()
        full = model.results @ unshed
        level = np.divide(model.results @ flows, full, out=np.ones(len(full)), where=full > 0)
        fair = fair_flows(model, vector).levels
        assert (level >= fair - ladder.loss - 0.02)[has_results].all()
