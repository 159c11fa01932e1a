import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem, TooLarge
from algorithms.lab.shedding.exact.planner import ExactPlanner
from algorithms.lab.shedding.plan_table import division
from algorithms.lab.shedding.plan_table.division import FlowOptimum, build_table, lp_oracle
from algorithms.lab.shedding.plan_table.rate_distributions import (
    RATE_PER_LAMBDA,
    ExponentialRates,
    MeasuredRates,
    RateDistribution,
)
from algorithms.lab.shedding.plan_table.rate_space import RateSpace
from algorithms.lab.shedding.plan_table.table import PlanTable
from algorithms.lab.shedding.real_workloads import recorded_rates
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import Network, Operator
from algorithms.vocabulary import Floats
from tests.algorithms.shedding.networks import chain_network, crossed, figure_1, figure_7, networks

MOST = 3_000


class Recorder:
    """The linear program, with the points at which it was solved."""

    def __init__(self) -> None:
        self.points: list[tuple[float, ...]] = []

    def __call__(self, model: FlowModel) -> division.Oracle:
        solve = lp_oracle(model)

        def recorded(rates: Floats) -> division.Optimum:
            self.points.append(tuple(rates.tolist()))
            return solve(rates)

        return recorded


def small_table(network: Network, bound: float, epsilon: float, **more: Any) -> PlanTable:
    """Return a table; reject the example if random numbers make it large."""
    model = FlowModel.of(network)
    try:
        return build_table(model, [bound] * model.inputs, epsilon, lp_values=MOST, **more)
    except TooLarge:
        reject()


def check_flows(model: FlowModel, flows: Floats, rates: Floats) -> None:
    """Assert that flows at rates overload nothing and keep at most what arrives."""
    assert (model.loads @ flows <= model.capacities * (1 + 1e-7)).all()
    arriving = np.concatenate([rates, model.arrivals @ flows])
    assert (flows <= arriving * (1 + 1e-9) + 1e-9).all()
    assert (flows >= 0).all()


@settings(deadline=None, max_examples=40)
@given(networks(most_inputs=2, links=True), st.sampled_from([0.3, 0.1]), st.data())
def test_every_rate_within_bounds_has_a_plan_within_epsilon(
    network: Network, epsilon: float, data: st.DataObject
) -> None:
    table = small_table(network, 8.0, epsilon)
    model, program = table.space.model, FlowProgram(table.space.model)
    assert table.error <= epsilon
    parts = st.floats(0, 1) | st.sampled_from([0.0, 0.125, 0.5, 1.0])
    for _ in range(10):
        rates = 8.0 * np.array([data.draw(parts) for _ in network.inputs])
        flows = table.flows_at(rates)
        check_flows(model, flows, rates)
        optimum = program.solve(rates).value
        assert float(model.values @ flows) >= (1 - epsilon) * optimum - 1e-7 * max(1, optimum)


def test_crossed_chains_need_about_a_thousand_lp_values() -> None:
    """At 5 % error up to 60 records/s, as far as the axes of the paper's figures extend."""
    table = build_table(FlowModel.of(crossed(64, 32)), [60, 60], 0.05)
    assert table.lp_values <= 1_000
    assert table.boxes <= 1_000


def test_a_point_is_solved_once_and_feasible_points_never() -> None:
    oracle, model = Recorder(), FlowModel.of(crossed(64, 32))
    table = build_table(model, [60, 60], 0.1, oracle=oracle)
    assert table.lp_values == len(oracle.points) == len(set(oracle.points)) > 100
    space = RateSpace(model, [60, 60])
    assert not any(space.is_feasible(np.array(point)) for point in oracle.points)


def test_the_plan_of_a_box_is_the_optimum_at_its_bottom() -> None:
    """Section 5.1: the point (60, 75) is reduced to (50, 50) by drops of 50/60 and 50/75."""
    network = chain_network([[1 / 40], [1 / 80]])
    table = build_table(FlowModel.of(network), [100, 100], 0.6)
    rates = np.array([60.0, 75.0])
    leaf = table.tree.leaf_at(rates.tolist())
    bottom = table.tree.rates(table.tree.bottom(leaf))
    optimum = FlowProgram(table.space.model).solve(bottom)
    assert table.flows_at(rates) == pytest.approx(optimum.flows)
    keep = table.space.model.keep(table.flows_at(rates), rates)
    assert keep == pytest.approx(optimum.flows / bottom * bottom / rates)


def test_feasible_rates_are_kept() -> None:
    table = build_table(FlowModel.of(figure_7()), [1], 0.05)
    assert table.flows_at(np.array([1 / 8])) == pytest.approx([1 / 8] * 3)
    assert table.flows_at(np.array([1 / 8 + 1e-3]))[0] < 1 / 8 + 1e-3
    alone = build_table(FlowModel.of(figure_7()), [1 / 8], 0.05)
    assert (alone.lp_values, alone.boxes, alone.plans, alone.error) == (0, 1, 0, 0)


def test_rates_above_the_bounds_are_reduced_to_the_bounds() -> None:
    table = build_table(FlowModel.of(crossed(64, 32)), [30, 30], 0.05)
    above = table.flows_at(np.array([90.0, 500.0]))
    assert above.tolist() == table.flows_at(np.array([30.0, 30.0])).tolist()


def test_inputs_without_results_are_dropped_and_are_no_dimension() -> None:
    """Otherwise boxes along the axis of i2 would never have a small percent error."""
    network = chain_network([[1.0], [1.0]])
    network = Network(network.nodes, network.inputs, network.operators, {"n1_q1": 0, "n1_q2": 1})
    table = build_table(FlowModel.of(network), [2, 2], 0.01)
    assert table.space.dimensions.tolist() == [1]
    assert table.flows_at(np.array([5.0, 0.75])) == pytest.approx([0, 0.75])
    assert table.flows_at(np.array([0.25, 0.75])) == pytest.approx([0.25, 0.75])


def test_a_network_without_results_needs_no_plans() -> None:
    network = Network({"A": 1.0}, ("i1",), (Operator("a", "A", 1, 1, ("i1",)),), {"a": 0})
    table = build_table(FlowModel.of(network), [5], 0.05)
    assert (table.lp_values, table.boxes) == (0, 1)
    assert table.flows_at(np.array([3.0])).tolist() == [0]


def test_the_box_with_the_largest_error_is_divided_first() -> None:
    steps: list[tuple[int, float]] = []
    model = FlowModel.of(crossed(64, 32))
    table = build_table(model, [60, 60], 0.05, observe=lambda *step: steps.append(step))
    counts, errors = [count for count, _ in steps], [error for _, error in steps]
    assert counts == sorted(counts)
    assert errors == sorted(errors, reverse=True)
    assert (counts[-1], errors[-1]) == (table.lp_values, table.error)
    assert errors[0] == 1.0


DISTRIBUTIONS = [
    ExponentialRates(np.array([12.0, 12.0])),
    MeasuredRates.of(recorded_rates("bc_small_vs_large_frames_100ms", 12.0)),
    MeasuredRates.of(recorded_rates("llm_code_vs_conv_10s", 15.0)),
]


@pytest.mark.parametrize("rates", DISTRIBUTIONS)
def test_the_mean_loss_of_solver_w_is_below_epsilon(rates: RateDistribution) -> None:
    """By 4,000 samples within the bounds; a part of the loss is below 1, so 3 sigma < 0.02."""
    model = FlowModel.of(crossed(64, 32))
    table = build_table(model, [60, 60], 0.02, distribution=rates)
    program = FlowProgram(model)
    losses = []
    for point in rates.sample(4_000, np.random.default_rng(5)):
        if (point <= 60).all() and point.any():
            flows = table.flows_at(point)
            check_flows(model, flows, point)
            losses.append(1 - float(model.values @ flows) / program.solve(point).value)
    assert table.expected_error is not None
    assert np.mean(losses) <= table.expected_error <= 0.02
    assert table.error > 0.02
    assert len(losses) / 4_000 == pytest.approx(table.coverage, abs=0.03)


@pytest.mark.parametrize("rates", DISTRIBUTIONS)
def test_the_expected_error_is_the_sum_over_boxes(rates: RateDistribution) -> None:
    """Section 5.2: of each box the probability times its percent error."""
    model = FlowModel.of(crossed(64, 32))
    table = build_table(model, [60, 60], 0.05, distribution=rates)
    program = FlowProgram(model)
    total = 0.0
    for box in table.rows:
        low, stop = table.tree.intervals([box])
        top = program.solve(table.tree.rates(table.tree.top(box))).value
        bottom = program.solve(low[0]).value
        total += float(rates.probabilities(low, stop)[0]) * (top - bottom) / top
    assert table.expected_error == pytest.approx(total / table.coverage, rel=1e-6)


def test_solver_w_needs_fewer_lp_values_than_solver_for_the_same_mean_error() -> None:
    """Figure 10 (b): the mean error that Solver reaches, by Solver-W."""
    model, rates = FlowModel.of(crossed(64, 32)), ExponentialRates(np.array([5.0, 5.0]))
    solver = build_table(model, [60, 60], 0.05)
    weighted = build_table(model, [60, 60], solver.mean_error(rates), distribution=rates)
    assert weighted.mean_error(rates) <= solver.mean_error(rates)
    assert weighted.lp_values < solver.lp_values / 2


def test_lambda_5_has_the_mean_error_of_figure_10() -> None:
    """1.44 % on average over five networks; the costs of four of them are assumed."""
    rates = ExponentialRates(np.full(2, 5 * RATE_PER_LAMBDA))
    errors = []
    for step in range(5):
        model = FlowModel.of(crossed(56 + 8 * step, 40 - 8 * step))
        errors.append(build_table(model, [60, 60], 0.05).mean_error(rates))
    assert np.mean(errors) == pytest.approx(0.0144, abs=0.0005)


def test_the_exact_planner_may_give_the_optima() -> None:
    def exact(model: FlowModel) -> division.Oracle:
        planner = ExactPlanner(model.network)

        def solve(rates: Floats) -> FlowOptimum:
            return FlowOptimum(planner.value(rates), planner.flows(rates))

        return solve

    model = FlowModel.of(crossed(64, 32))
    own, linear = (build_table(model, [60, 60], 0.05, oracle=o) for o in (exact, lp_oracle))
    assert (own.lp_values, own.boxes) == (linear.lp_values, linear.boxes)
    # Rounding decides which of two boxes with equal errors is divided first.
    assert np.sort(own.errors) == pytest.approx(np.sort(linear.errors), abs=1e-7)


def test_progress_is_ascending_and_its_exceptions_stop_the_run() -> None:
    model, shares = FlowModel.of(crossed(64, 32)), list[float]()
    build_table(model, [60, 60], 0.1, progress=shares.append)
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert len(shares) > 50

    class Cancelled(Exception):
        pass

    def cancel(share: float) -> None:
        if share > 0.2:
            raise Cancelled

    with pytest.raises(Cancelled):
        build_table(model, [60, 60], 0.1, progress=cancel)


@pytest.mark.parametrize(
    ("bounds", "epsilon", "why"),
    [
        ([60], 0.05, "must be 2 rates, one per input, not 1"),
        ([60, -1], 0.05, r"bounds\[1\]: must be finite and not negative"),
        ([60, math.inf], 0.05, r"bounds\[1\]: must be finite"),
        ([60, 1e13], 0.05, r"bounds: must be at most 1e\+12"),
        (["many", 1], 0.05, "must hold numbers"),
        ([60, 60], 0, "epsilon: must be above 0 and at most 1, not 0"),
        ([60, 60], 1.5, "epsilon"),
        ([60, 60], math.nan, "epsilon"),
    ],
)
def test_bad_bounds_and_errors_are_rejected(bounds: list[Any], epsilon: float, why: str) -> None:
    with pytest.raises(BadProblem, match=why):
        build_table(FlowModel.of(figure_1()), bounds, epsilon)


def test_a_network_with_floors_is_rejected() -> None:
    network = figure_1()
    fair = Network(
        network.nodes, network.inputs, network.operators, network.outputs, {}, {"b1": 0.5}
    )
    with pytest.raises(BadProblem, match="floors: are not supported by tables of plans"):
        build_table(FlowModel.of(fair), [1, 1], 0.05)


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        (ExponentialRates(np.ones(3)), "distribution: must be of 2 inputs, not 3"),
        (MeasuredRates.of([[5.0, 5.0]]), "distribution: has no probability within the bounds"),
    ],
)
def test_a_distribution_of_other_rates_is_rejected(rates: RateDistribution, why: str) -> None:
    with pytest.raises(BadProblem, match=why):
        build_table(FlowModel.of(figure_1()), [1, 1], 0.05, distribution=rates)


def test_too_many_lp_values_boxes_and_flows_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    model = FlowModel.of(crossed(64, 32))
    with pytest.raises(TooLarge, match=r"allowed LP values \(lp_values\); .* raise epsilon"):
        build_table(model, [60, 60], 0.05, lp_values=50)
    monkeypatch.setattr(division, "MAX_BOXES", 40)
    with pytest.raises(TooLarge, match=r"more than 40 boxes; .* about 0"):
        build_table(model, [60, 60], 0.05)
    monkeypatch.setattr(division, "MAX_COORDINATES", 20)
    with pytest.raises(TooLarge, match="more than 10 boxes"):
        build_table(model, [60, 60], 0.05)
    monkeypatch.setattr(division, "MAX_NUMBERS", 5)
    with pytest.raises(TooLarge, match="plans with 5 flows"):
        build_table(model, [60, 60], 0.05)


def test_too_many_inputs_are_rejected() -> None:
    """2^13 boxes per division; inputs with a bound of 0 do not count."""
    model = FlowModel.of(chain_network([[1.0]] * 13))
    with pytest.raises(TooLarge, match="a rate space of 13 inputs"):
        build_table(model, [1] * 13, 0.5)
    table = build_table(model, [2, *[0] * 12], 0.05)
    assert table.flows_at(np.full(13, 2.0))[1:].tolist() == [0] * 12
