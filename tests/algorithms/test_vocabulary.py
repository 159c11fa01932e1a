import math
import pickle
from typing import Any

import pytest

from algorithms.errors import BadParameters, BadProblem, Infeasible, PlanningError
from algorithms.placement.online import LeastCost, OnRand


def test_fields_describe_themselves() -> None:
    """A form needs name, type, default, unit, help and range, and nothing else."""
    nu, alpha = LeastCost.fields()
    assert (nu.name, nu.type, nu.default, nu.minimum, nu.maximum) == ("nu", float, 0.05, 0.0, None)
    assert (alpha.name, alpha.unit, alpha.default) == ("alpha", "queries", 10.0)


def test_what_is_left_out_takes_its_default() -> None:
    assert LeastCost.from_mapping({"alpha": 3}) == LeastCost(nu=0.05, alpha=3.0)


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "x", None, True])
def test_values_out_of_range_are_refused_by_field(value: Any) -> None:
    with pytest.raises(BadParameters) as caught:
        LeastCost.from_mapping({"nu": value})
    assert list(caught.value.fields) == ["nu"]


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(BadParameters) as caught:
        LeastCost(nu=-1, alpha=-1)
    assert list(caught.value.fields) == ["nu", "alpha"]


def test_whole_numbers_are_not_rounded() -> None:
    with pytest.raises(BadParameters):
        OnRand.from_mapping({"seed": 1.5})


def test_unknown_names_are_refused() -> None:
    with pytest.raises(BadParameters) as caught:
        LeastCost.from_mapping({"beta": 1})
    assert caught.value.fields == {"beta": ["is not a parameter"]}


@pytest.mark.parametrize(
    "error",
    [BadProblem("nu", "bad"), BadParameters({"nu": ["bad"]}), Infeasible(10, [3, 3, 3], 0.0)],
)
def test_errors_travel_between_processes_with_their_data(error: PlanningError) -> None:
    """Celery and process pools pickle what is raised."""
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
