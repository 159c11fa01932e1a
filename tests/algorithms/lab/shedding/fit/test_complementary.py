"""Complementary local plans: figure 7, and the greedy list against the linear program."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from algorithms.lab.shedding.fit.complementary import DropList
from algorithms.lab.shedding.fit.valued import valued_network
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import Network
from tests.algorithms.shedding import networks


def drop_list(network: Network) -> DropList:
    model = FlowModel.of(network)
    return DropList.of(model, model.weights)


def test_figure_7() -> None:
    drops = drop_list(networks.figure_7())
    names = [drops.model.network.locations[place] for place in drops.order]
    # The ratio of the input is 2/8 with both branches, 1/3 without the lower one.
    assert names == ["common->lower", "i1", "common->upper"]
    assert drops.ratios == pytest.approx([1 / 5, 1 / 3, 1 / 2])
    assert drops.loads[:, 0] == pytest.approx([8, 3, 0, 0])
    assert drops.last.tolist() == [1]
    rates = np.array([[1 / 8], [0.2], [1 / 3], [0.34]])
    stages, parts, scores = drops.place(rates)
    assert stages.tolist() == [0, 1, 1, -1]
    # 60 % of the load of the lower branch.
    assert parts[:3] == pytest.approx([0, 0.6, 1])
    assert scores[:3] == pytest.approx([0.25, 0.28, 1 / 3])
    assert drops.flows(rates[1], 1, 0.6) == pytest.approx([0.2, 0.2, 0.08])


def test_drops_of_figure_3_follow_updated_ratios() -> None:
    """A branch that is cheap together with its brother is dear without it."""
    drops = drop_list(networks.fan_out([0.5, 3.0, 9.0]))
    names = [drops.model.network.locations[place] for place in drops.order]
    assert names == ["common->b3", "common->b2", "i1", "common->b1"]
    assert drops.ratios == pytest.approx([1 / 9, 1 / 3, 2 / 3, 2])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_scores_are_those_of_the_linear_program(data: st.DataObject) -> None:
    network = valued_network(data.draw(networks.networks(most_nodes=1, most_operators=10)))
    assume(network is not None)
    assert network is not None
    drops = drop_list(network)
    assert (np.diff(drops.ratios) >= -1e-9).all()
    rates = np.array([data.draw(networks.rates_of(network)) for _ in range(3)])
    program = FlowProgram(drops.model)
    for point, stage, part, score in zip(rates, *drops.place(rates), strict=True):
        optimum = program.solve(point)
        if stage < 0:
            # An input drops in every optimum, or might as well.
            assert drops.model.loads @ drops.model.unshed(point) > drops.model.capacities
            continue
        assert score == pytest.approx(optimum.value, rel=1e-7, abs=1e-9)
        flows = drops.flows(point, int(stage), float(part))
        assert flows[: len(point)] == pytest.approx(point)
        assert drops.model.values @ flows == pytest.approx(score, rel=1e-9, abs=1e-12)
        assert (drops.model.loads @ flows <= drops.model.capacities * (1 + 1e-9)).all()
        splits = flows[len(point) :]
        assert (splits <= drops.model.arrivals @ flows + 1e-9).all()
