"""Thresholds of drop locations where one resource binds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import TooLarge
from algorithms.lab.shedding.exact import arrangement
from algorithms.lab.shedding.exact.equations import equations_of, profits
from algorithms.lab.shedding.exact.planner import ExactPlanner
from algorithms.lab.shedding.exact.thresholds import prices_of_cuts, thresholds_of
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram
from tests.algorithms.shedding.networks import fan_out, figure_7, networks, rates_of


def test_figure_7() -> None:
    """The lower branch: 1 / 5; the upper: 1 / 2; the input with the upper: 1 / (1 + 2)."""
    network = figure_7()
    eq = equations_of(FlowModel.of(network))
    thresholds = thresholds_of(eq)
    names = [network.locations[place] for place in thresholds.order]
    assert names == ["common->upper", "i1", "common->lower"]
    assert thresholds.price == pytest.approx([1 / 2, 1 / 3, 1 / 5])
    assert prices_of_cuts(eq, thresholds) == pytest.approx([0, 1 / 5, 1 / 3])


@settings(deadline=None)
@given(st.data())
def test_profits_change_their_sign_at_the_thresholds(data: st.DataObject) -> None:
    network = data.draw(networks(most_nodes=1, most_operators=12))
    eq = equations_of(FlowModel.of(network))
    if len(eq.capacity) != 1:
        return
    thresholds = thresholds_of(eq)
    assert (np.diff(thresholds.price[np.isfinite(thresholds.price)]) <= 0).all()
    for place, price in zip(thresholds.order.tolist(), thresholds.price.tolist(), strict=True):
        if np.isfinite(price):
            assert profits(eq, np.array([price]))[place] == pytest.approx(0, abs=1e-9)
            assert profits(eq, np.array([1.01 * price + 1e-6]))[place] < 0
        else:
            assert profits(eq, np.array([1e6]))[place] >= 0


@settings(deadline=None)
@given(st.data())
def test_filling_and_the_least_cut_are_the_optimum(data: st.DataObject) -> None:
    network = data.draw(networks(most_nodes=1, most_operators=12))
    model = FlowModel.of(network)
    planner, program = ExactPlanner(network), FlowProgram(model)
    for _ in range(3):
        rates = data.draw(rates_of(network))
        flows, value = planner.flows(rates), program.solve(rates).value
        assert float(model.values @ flows) == pytest.approx(value, rel=1e-8, abs=1e-8)
        assert (model.loads @ flows <= model.capacities * (1 + 1e-9)).all()
    assert planner.programs == 0


def test_too_many_cuts_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    planner = ExactPlanner(fan_out([1.0, 2.0, 3.0]))
    monkeypatch.setattr(arrangement, "MAX_NUMBERS", 8)
    with pytest.raises(TooLarge, match="cuts"):
        planner.parts[0].cuts()
    # The input, with the cheapest branch, has the threshold of the second branch.
    assert planner.cuts == 3
