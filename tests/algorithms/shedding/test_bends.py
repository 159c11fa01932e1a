"""Points on the optimal value: few programs, losses close to the best, single optima."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from algorithms.shedding import bends
from algorithms.shedding.bends import Bends, thinned
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import ALL, NOTHING, Network, Operator
from algorithms.shedding.problem import SheddingProblem
from algorithms.shedding.rungs import first_full_factor, plan_rungs
from tests.algorithms.shedding.networks import chain_network, fan_out, figure_7, problem, problems


def many_bends() -> SheddingProblem:
    costs = np.random.default_rng(1).uniform(1, 9, 250)
    return problem(fan_out(costs.tolist()), 1.0)


def test_few_programs_give_a_loss_near_the_least() -> None:
    base = many_bends()
    first = first_full_factor(base.model, base.vector)
    every = Bends(FlowProgram(base.model), base.vector)
    all_points = every.points(first, 20 * first, most=64, loss=0.0)
    least = thinned(all_points, 8, 0.0)[1]
    few = Bends(FlowProgram(base.model), base.vector)
    points = few.points(first, 20 * first, most=8, loss=0.0)
    assert len(points) < len(all_points) / 2
    chosen, worst = thinned(points, 8, 0.0)
    assert len(chosen) == 8
    assert worst <= worst + few.unresolved <= 1.1 * least
    # What the programs left open is in the loss of the ladder.
    ladder = plan_rungs(base, 20 * first, most=8, loss=0.0)
    assert ladder.loss == pytest.approx(worst + few.unresolved)


@settings(deadline=None)
@example(problem(chain_network([[1.0]]), 1e-308), 2.0)
@given(problems(links=True), st.floats(1.5, 20.0))
def test_points_are_concave_and_tangents_are_above(base: SheddingProblem, most: float) -> None:
    first = first_full_factor(base.model, base.vector)
    # `plan_rungs` takes finite factors only: a network that is almost without load has no ladder.
    if most * first == float("inf"):
        return
    search = Bends(FlowProgram(base.model), base.vector)
    points = sorted(search.points(first, most * first, 9, 1e-3), key=lambda point: point.factor)
    assert points[0].factor == first
    assert points[-1].factor == pytest.approx(most * first)
    scale = 1e-7 * max(point.value for point in points) + 1e-9
    for low, high in pairwise(points):
        assert low.value <= high.value + scale
        width = high.factor - low.factor
        assert high.value <= low.value + low.slope * width + scale
        assert low.value <= high.value - high.slope * width + scale


def test_the_number_of_programs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bends, "MAX_SOLVES", 20)
    base = many_bends()
    first = first_full_factor(base.model, base.vector)
    search = Bends(FlowProgram(base.model), base.vector)
    points = search.points(first, 20 * first, most=8, loss=0.0)
    assert 20 <= len(points) <= 20 + 8
    assert search.unresolved > bends.ROUNDING


def test_a_single_optimum_is_known_as_such() -> None:
    better = problem(chain_network([[1.0], [2.0]]), 0.9, 0.9)
    assert FlowProgram(better.model).solve(better.vector).is_unique
    assert not FlowProgram(better.model).solve(better.vector, np.ones(2)).is_unique
    equal = problem(chain_network([[1.0], [1.0]]), 0.9, 0.9)
    assert not FlowProgram(equal.model).solve(equal.vector).is_unique


@settings(deadline=None)
@given(problems(links=True), st.floats(0.5, 20.0))
def test_an_optimum_that_is_single_is_that_of_any_start(
    base: SheddingProblem, factor: float
) -> None:
    program = FlowProgram(base.model)
    rates = factor * base.vector
    best = program.solve(rates)
    assert best.value == pytest.approx(program.solve(rates).value, rel=1e-9, abs=1e-9)
    if not best.is_unique:
        return
    program.solve(3 * rates)
    other = FlowProgram(base.model)
    other.solve(0.1 * rates)
    scale = max(1.0, float(np.max(base.model.unshed(rates))))
    for flows in (program.solve(rates).flows, other.solve(rates).flows):
        assert flows == pytest.approx(best.flows, abs=1e-6 * scale)


def test_drop_sites_lead_to_each_other_results_or_nothing() -> None:
    (site,), leads = figure_7().drop_sites
    assert (site.places, site.behind, site.is_output) == ((1, 2), (ALL, ALL), False)
    assert leads == (0,)
    operators = (
        Operator("a", "A", 1.0, 1.0, ("i1",)),
        Operator("b", "A", 1.0, 1.0, ("a",)),
        Operator("c", "A", 1.0, 1.0, ("b",)),
        Operator("d", "A", 1.0, 1.0, ("b",)),
        Operator("e", "A", 1.0, 1.0, ("i2",)),
    )
    outputs = {"a": 1.0, "c": 1.0}
    sites, leads = Network({"A": 1.0}, ("i1", "i2"), operators, outputs).drop_sites
    after_b, after_a = sites
    assert after_b.behind == (ALL, NOTHING)
    assert (after_a.behind, after_a.is_output) == ((0,), True)
    assert leads == (ALL, NOTHING)
