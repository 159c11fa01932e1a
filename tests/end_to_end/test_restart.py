"""All processes of a Weir of its own are killed at once while a mixed plan is executed.

On the default tolerances of the policy. `make nightly` kills them in groups and in pairs, and stops
each for 90 s (`test_restart_groups.py`).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.harbour import Harbour, running_harbour
from tests.end_to_end.weir_processes import COMMANDS, undeclared

pytestmark = pytest.mark.spark


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[Harbour]:
    """A cluster whose queries have results, on a Weir without a demonstration."""
    with running_harbour(tmp_path) as harbour:
        yield harbour


def test_every_kind_of_process_is_killed() -> None:
    assert undeclared() == set()


def test_an_execution_survives_the_death_of_each_process(harbour: Harbour) -> None:
    with harbour.flow(0):
        harbour.execute()
        harbour.kill(tuple(COMMANDS))
    harbour.finish()
