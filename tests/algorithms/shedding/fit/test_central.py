"""The guarantee of feasible input tables: against the linear program, on random networks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadParameters, BadProblem, TooLarge
from algorithms.shedding.fit.central import CFit, FitTables
from algorithms.shedding.flows import FlowModel
from algorithms.shedding.lp import FlowProgram
from algorithms.shedding.network import Network, Operator
from algorithms.shedding.problem import SheddingProblem, check_plan
from algorithms.vocabulary import Floats
from tests.algorithms.shedding import networks

EPSILON = 0.2


def rate_points(network: Network, seed: int, count: int) -> Floats:
    """Return rates around the capacity, some of them 0 or far below or above, float64[n, i]."""
    model = FlowModel.of(network)
    loads = model.loads @ model.unshed(np.eye(model.inputs)) / model.capacities[:, None]
    limits = 1 / np.maximum(loads.max(axis=0), 0.01)
    random = np.random.default_rng(seed)
    shape = (count, model.inputs)
    factors = random.choice([0.0, 0.01, 0.1, 1.0, 10.0], shape, p=[0.1, 0.1, 0.2, 0.5, 0.1])
    return np.asarray(limits * factors * random.exponential(1.0, shape))


def assert_guarantee(network: Network, tables: FitTables, rates: Floats, epsilon: float) -> None:
    program = FlowProgram(FlowModel.of(network))
    for point in rates:
        plan = tables.lookup(point)
        check_plan(SheddingProblem(network, dict(zip(network.inputs, point, strict=True))), plan)
        optimum = program.solve(point).value
        assert plan.outcome.value >= (1 - epsilon) * optimum - 1e-7 * max(1.0, optimum)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(0, 1000))
def test_guarantee_on_trees(data: st.DataObject, seed: int) -> None:
    network = data.draw(networks.networks(tree=True, most_inputs=2))
    tables = FitTables.of(network, EPSILON)
    assert_guarantee(network, tables, rate_points(network, seed, 20), EPSILON)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(0, 1000))
def test_guarantee_on_any_nodes(data: st.DataObject, seed: int) -> None:
    network = data.draw(networks.networks(most_inputs=2))
    tables = FitTables.of(network, EPSILON)
    assert_guarantee(network, tables, rate_points(network, seed, 20), EPSILON)
