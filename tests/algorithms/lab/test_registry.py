import pytest

from algorithms.errors import UnknownAlgorithm, UnknownPlanner
from algorithms.lab.registry import PLACEMENT, PLANNERS, algorithm, algorithms, planner
from algorithms.placement.offline import Mms
from algorithms.placement.online import LeastCost
from algorithms.planner import Planner
from tests.algorithms.placement.instances import chain

pytestmark = pytest.mark.nightly("lab", by_day=True)


def test_algorithms_are_found_by_planner_and_name() -> None:
    assert algorithm(PLACEMENT, "mms").parameters is Mms
    assert [known.name for known in PLANNERS] == [
        PLACEMENT, "migration", "admission", "partitioning", "shedding",
    ]  # fmt: skip


def test_names_are_unique() -> None:
    names = [(known.name, a.name) for known in PLANNERS for a in known.algorithms]
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


def test_an_unknown_planner_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownPlanner, match="'teleport'; known: placement"):
        planner("teleport")


@pytest.mark.parametrize("one", PLANNERS, ids=lambda one: one.name)
def test_every_planner_describes_itself(one: Planner) -> None:
    """Command line, API and pages show these words and numbers; defaults must pass the checks."""
    assert one.title
    assert len({row.name for row in one.algorithms}) == len(one.algorithms)
    for row in one.algorithms:
        assert row.summary.endswith(".")
        for field in one.fields(row):
            assert field.help.endswith(".")
            assert field.problem_with(field.default) is None
