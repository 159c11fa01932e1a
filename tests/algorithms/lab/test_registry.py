import pytest

from algorithms.errors import UnknownPlanner
from algorithms.lab.registry import PLACEMENT, PLANNERS, algorithm, algorithms, planner
from algorithms.placement.offline import Mms
from algorithms.placement.online import LeastCost
from algorithms.planner import Planner

pytestmark = pytest.mark.nightly("lab", by_day=True)


def test_algorithms_are_found_by_planner_and_name() -> None:
    assert algorithm(PLACEMENT, "mms").parameters is Mms
    assert [known.name for known in PLANNERS] == [
        PLACEMENT, "migration", "admission", "partitioning", "shedding",
    ]  # fmt: skip


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
