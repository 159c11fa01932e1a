"""Processes of a running Weir are killed and stopped while a mixed plan is executed.

On the default tolerances of the policy. The short test is part of every run; `make nightly` adds
the processes that are stopped for 90 s, and pairs.
"""

import os
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.end_to_end.harbour import ENVIRONMENT, Harbour
from tests.end_to_end.weir_processes import COMMANDS, undeclared
from tests.support.running_weir import RunningWeir

pytestmark = pytest.mark.spark
# Each group is killed at once: the recovery of Spark, which the last one needs, takes most of the
# time. `make nightly` kills them in pairs.
GROUPS = (
    ("web", "worker", "lab", "webhooks"),
    ("archiver", "beat", "relay"),
    ("redis", "agent", "driver"),
)
STOPPED_S = 90.0


@pytest.fixture
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harbour]:
    """A cluster whose queries have results, on a Weir without a demonstration."""
    weir = RunningWeir(tmp_path_factory.mktemp("harbour") / "data", ENVIRONMENT)
    weir.start()
    try:
        harbour = Harbour(weir)
        harbour.begin()
        harbour.settle()
        yield harbour
    finally:
        weir.end()
    assert weir.processes() == []


def test_every_kind_of_process_is_killed() -> None:
    assert undeclared() == set()
    assert {name for group in GROUPS for name in group} == COMMANDS.keys()


def test_an_execution_survives_the_death_of_each_process(harbour: Harbour) -> None:
    with harbour.flow(0):
        harbour.execute()
        for group in GROUPS:
            harbour.kill(group)
    harbour.finish()


@pytest.mark.skipif("WEIR_SCHEDULES" not in os.environ, reason="takes an hour: make nightly")
def test_an_execution_survives_stops_of_ninety_seconds(harbour: Harbour) -> None:
    with harbour.flow(0):
        harbour.execute()
        for name in COMMANDS:
            harbour.stop(name, STOPPED_S)
    harbour.finish()


@pytest.mark.skipif("WEIR_SCHEDULES" not in os.environ, reason="many starts of Spark: make nightly")
def test_an_execution_survives_the_death_of_two_processes(harbour: Harbour) -> None:
    with harbour.flow(0):
        harbour.execute()
        for pair in pairwise(COMMANDS):
            harbour.kill(pair)
    harbour.finish()
