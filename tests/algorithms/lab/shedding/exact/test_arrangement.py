"""All cuts of networks without splits on two nodes."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.lab.shedding.exact import arrangement
from algorithms.lab.shedding.exact.arrangement import arranged, can_arrange
from algorithms.lab.shedding.exact.equations import equations_of
from algorithms.lab.shedding.exact.planner import ExactPlanner
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram
from algorithms.vocabulary import Floats
from tests.algorithms.shedding.networks import chain_network, figure_7, networks, rates_of


def every_vertex(loads: Floats, values: Floats, capacities: Floats) -> list[tuple[float, Floats]]:
    """Return constant and slopes of the cut of every crossing of two lines with prices >= 0."""
    lines = [*zip(loads, values, strict=True), (np.array([1, 0]), 0), (np.array([0, 1]), 0)]
    result = []
    for (a, v), (b, w) in combinations(lines, 2):
        matrix = np.array([a, b], np.float64)
        if abs(np.linalg.det(matrix)) > 1e-9:
            prices = np.linalg.solve(matrix, [v, w])
            if (prices >= -1e-9).all():
                result.append(
                    (float(prices @ capacities), np.maximum(values - loads @ prices, 0.0))
                )
    return result


def test_cuts_are_the_vertices_that_are_the_least_for_some_rates() -> None:
    generator = np.random.default_rng(5)
    costs = generator.uniform(0.1, 1, (5, 2))
    network = chain_network(costs.tolist(), capacities=[1.0, 2.0])
    cuts = arranged(equations_of(FlowModel.of(network))).cuts
    vertices = every_vertex(costs, np.ones(5), np.array([1.0, 2.0]))
    # Rates on all scales: those with few inputs make cuts the least, too.
    points = generator.uniform(0, 20, (100_000, 5)) * generator.integers(0, 2, (100_000, 5))
    bounds = np.array([constant + points @ slope for constant, slope in vertices])
    assert cuts.values(points) == pytest.approx(bounds.min(axis=0), rel=1e-9)
    ordered = np.sort(bounds, axis=0)
    is_only = ordered[1] - ordered[0] > 1e-9
    assert len(cuts.constant) == len(np.unique(bounds.argmin(axis=0)[is_only])) < len(vertices)


@settings(deadline=None)
@given(st.data())
def test_the_least_cut_is_the_optimum(data: st.DataObject) -> None:
    network = data.draw(networks(most_inputs=6, most_nodes=2, splits=False, links=True))
    model = FlowModel.of(network)
    eq = equations_of(model)
    if not can_arrange(eq):
        return
    cuts, program = arranged(eq).cuts, FlowProgram(model)
    for _ in range(4):
        rates = data.draw(rates_of(network))
        value = program.solve(rates).value
        assert cuts.values(rates[None])[0] == pytest.approx(value, rel=1e-8, abs=1e-8)


def test_equal_inputs_are_planned_though_several_lines_are_one() -> None:
    network = chain_network([[0.016, 0.008], [0.008, 0.016]] * 4)
    planner, model = ExactPlanner(network), FlowModel.of(network)
    program = FlowProgram(model)
    assert len(planner.parts[0].cuts().constant) == 4
    for rates in np.random.default_rng(6).uniform(0, 60, (50, 8)):
        value = float(model.values @ planner.flows(rates))
        assert value == pytest.approx(program.solve(rates).value, rel=1e-9)


def test_splits_other_counts_of_nodes_and_large_networks_are_left_to_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fits(costs: list[list[float]]) -> bool:
        return can_arrange(equations_of(FlowModel.of(chain_network(costs))))

    assert fits([[1.0, 2.0], [2.0, 1.0]])
    assert not fits([[1.0, 2.0, 3.0]])
    assert not fits([[1.0, 0.0]])
    assert not can_arrange(equations_of(FlowModel.of(figure_7())))
    monkeypatch.setattr(arrangement, "MAX_NUMBERS", 11)
    assert not fits([[1.0, 2.0], [2.0, 1.0]])
