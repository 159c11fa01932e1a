from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse import vstack

from algorithms.errors import NotProven, TooLarge
from algorithms.lab.shedding.exact.algorithm import fair_plan
from algorithms.shedding import fair_rungs
from algorithms.shedding.kept_parts import KeptRows, maximize
from algorithms.shedding.lp import Lp
from algorithms.shedding.problem import SheddingProblem
from tests.algorithms.shedding.certificate import check_plan
from tests.algorithms.shedding.networks import chain_network, fan_out, figure_1, problem, problems


def approx(expected: object) -> object:
    return pytest.approx(expected, rel=1e-6, abs=1e-7)


def kept(given_problem: SheddingProblem) -> dict[str, float]:
    plan = fair_plan(given_problem)
    check_plan(given_problem, plan)
    return dict(plan.outcome.kept)


def test_equal_outputs_share_a_node_equally() -> None:
    """The optimum of the throughput drops all of the expensive chain instead."""
    costly = problem(chain_network([[1.0], [3.0]]), 1, 1)
    assert kept(costly) == approx({"n1_q1": 1 / 4, "n1_q2": 1 / 4})
    assert Lp().solve(costly).outcome.kept == approx({"n1_q1": 1.0, "n1_q2": 0.0})


def test_weights_divide_the_kept_parts() -> None:
    plain = chain_network([[1.0], [1.0]])
    network = replace(plain, outputs={"n1_q1": 1.0, "n1_q2": 3.0})
    assert kept(problem(network, 2, 2)) == approx({"n1_q1": 1 / 8, "n1_q2": 3 / 8})
    # The heavier output keeps all it has; then the other gets the rest.
    assert kept(problem(network, 2, 0.2)) == approx({"n1_q1": 2 / 5, "n1_q2": 1.0})


def test_floors_hold_before_fair_shares() -> None:
    plain = chain_network([[1.0], [1.0]])
    network = replace(plain, floors={"n1_q1": 0.5})
    assert kept(problem(network, 1.5, 1.5)) == approx({"n1_q1": 0.5, "n1_q2": 1 / 6})


def test_infeasible_floors_are_reported() -> None:
    network = replace(figure_1(), floors={"b1": 0.9})
    with pytest.raises(NotProven, match="floors"):
        fair_plan(problem(network, 1, 1))


def test_outputs_without_a_weight_get_nothing_that_others_need() -> None:
    plain = chain_network([[1.0], [1.0]])
    network = replace(plain, outputs={"n1_q1": 1.0, "n1_q2": 0.0})
    assert kept(problem(network, 2, 2))["n1_q1"] == approx(0.5)
    none = replace(plain, outputs=dict.fromkeys(plain.outputs, 0.0))
    check_plan(problem(none, 2, 2), fair_plan(problem(none, 2, 2)))


def test_many_outputs_are_too_many_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_rungs, "MAX_OUTPUTS", 3)
    with pytest.raises(TooLarge, match="4 outputs"):
        fair_plan(problem(fan_out([1.0, 2.0, 3.0, 4.0]), 1.0))


@settings(deadline=None, max_examples=60)
@given(problems(links=True))
def test_no_output_gains_without_loss_of_one_that_is_no_better_off(drawn: SheddingProblem) -> None:
    # From the rounding of others an output with few records gains much.
    rates = [max(rate, 0.1) if rate > 0 else 0.0 for rate in drawn.vector.tolist()]
    random = problem(drawn.network, *rates)
    parts = np.array(list(kept(random).values()))
    model = random.model
    rows = KeptRows.of(model, random.vector)
    base = vstack([rows.loads, rows.splits])
    room = np.concatenate([np.ones(len(model.capacities)), np.zeros(rows.splits.shape[0])])
    some = (model.weights > 0) & (rows.has_results > 0)
    shares = np.divide(parts, model.weights, out=np.full(len(parts), np.inf), where=some)
    for output in np.flatnonzero(some).tolist():
        held = np.flatnonzero(some & (shares <= shares[output] + 1e-6))
        held = held[held != output]
        limits = np.concatenate([room, -parts[held] + 1e-8])
        rest = vstack([base, -rows.results[held]])
        best = maximize(rows.results[[output]].toarray()[0], rest, limits)
        assert best is not None
        # The outputs that are held may lose 1e-8, from which this output gains a multiple.
        assert best.objective <= parts[output] + 1e-3


@settings(deadline=None)
@given(problems(links=True))
def test_fair_plans_have_the_most_throughput_of_their_levels(random: SheddingProblem) -> None:
    plan = fair_plan(random)
    check_plan(random, plan)
    best = Lp().solve(random)
    assert plan.outcome.value <= best.outcome.value * (1 + 1e-7) + 1e-7
    levels = fair_rungs.fair_levels(random.model, KeptRows.of(random.model, random.vector))
    floors = dict(zip(random.network.outputs, (levels * (1 - 1e-6)).tolist(), strict=True))
    held = SheddingProblem(replace(random.network, floors=floors), random.rates)
    # Levels that are 1e-6 lower leave a little more to others.
    assert plan.outcome.value >= Lp().solve(held).outcome.value * (1 - 1e-3) - 1e-7
