"""All processes of the shared Weir are killed at once while a mixed plan is executed.

On the default tolerances of the policy. `make nightly` kills them in groups and in pairs, and stops
each for 90 s (`test_restart_groups.py`).
"""

import pytest

from tests.end_to_end.harbour import Harbour
from tests.end_to_end.weir_processes import COMMANDS, undeclared
from tests.support.running_weir import RunningWeir

pytestmark = pytest.mark.spark


@pytest.fixture
def harbour(weir: RunningWeir) -> Harbour:
    """A cluster whose queries have results, beside the demonstration's, which is stopped."""
    harbour = Harbour(weir)
    harbour.stop_cluster("sf")
    harbour.begin()
    harbour.settle()
    return harbour


def test_every_kind_of_process_is_killed() -> None:
    assert undeclared() == set()


def test_an_execution_survives_the_death_of_each_process(harbour: Harbour) -> None:
    with harbour.flow(0):
        harbour.execute()
        harbour.kill(tuple(COMMANDS))
    harbour.finish()
