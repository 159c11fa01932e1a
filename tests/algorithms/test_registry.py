import pytest

from algorithms.errors import UnknownAlgorithm
from algorithms.placement.offline import Mms
from algorithms.placement.online import LeastCost
from algorithms.registry import PLACEMENT, algorithm, algorithms, planners
from tests.algorithms.placement.instances import chain


def test_algorithms_are_found_by_planner_and_name() -> None:
    assert algorithm(PLACEMENT, "mms").parameters is Mms
    assert planners() == (PLACEMENT,)


def test_names_are_unique() -> None:
    names = [(a.planner, a.name) for a in algorithms(PLACEMENT)]
    assert len(names) == len(set(names))


def test_an_unknown_name_says_which_are_known() -> None:
    with pytest.raises(UnknownAlgorithm) as caught:
        algorithm(PLACEMENT, "best")
    assert "mms" in caught.value.known


def test_parameters_of_another_algorithm_are_refused() -> None:
    with pytest.raises(TypeError, match="LeastCost"):
        algorithm(PLACEMENT, "least_cost").solve(chain(), Mms())


def test_kinds_are_told_apart() -> None:
    offline, online = (algorithms(PLACEMENT, kind) for kind in ("offline", "online"))
    assert {"mms", "ic", "off_rand", "refined"} <= {a.name for a in offline}
    assert not {a.name for a in offline} & {a.name for a in online}
    assert LeastCost in {a.parameters for a in online}
