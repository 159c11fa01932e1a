"""Processes of a Weir of its own are killed together, in groups and in pairs, and stopped for 90 s.

On the default tolerances of the policy, while mixed plans are executed, and with all results
checked: `make nightly`. `test_operator_day.py` kills all of them in every run.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.end_to_end.harbour import Harbour, running_harbour
from tests.end_to_end.weir_processes import COMMANDS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.nightly("losses"),
]
# Each group is killed at once: the recovery of Spark, which the last one needs, takes most of the
# time.
GROUPS = (
    ("web", "worker", "lab", "webhooks"),
    ("beat", "relay"),
    ("redis", "agent", "driver"),
)
STOPPED_S = 90.0


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[Harbour]:
    """A cluster whose queries have results, on a Weir without a demonstration."""
    with running_harbour(tmp_path) as harbour:
        yield harbour


def test_an_execution_survives_the_death_of_all(harbour: Harbour) -> None:
    with harbour.flow(0):
        harbour.execute()
        harbour.kill(tuple(COMMANDS))
    harbour.finish()


def test_an_execution_survives_the_death_of_groups(harbour: Harbour) -> None:
    assert {name for group in GROUPS for name in group} == COMMANDS.keys()
    with harbour.flow(0):
        harbour.execute()
        for group in GROUPS:
            harbour.kill(group)
    harbour.finish()


def test_an_execution_survives_stops_of_ninety_seconds(harbour: Harbour) -> None:
    with harbour.flow(0):
        harbour.execute()
        for name in COMMANDS:
            harbour.stop(name, STOPPED_S)
    harbour.finish()


def test_an_execution_survives_the_death_of_two_processes(harbour: Harbour) -> None:
    with harbour.flow(0):
        harbour.execute()
        for pair in pairwise(COMMANDS):
            harbour.kill(pair)
    harbour.finish()
