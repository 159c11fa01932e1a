"""Processes of a running Weir are killed and stopped while a mixed plan is executed.

On the default tolerances of the policy. The short test is part of every run; `make nightly` adds
the processes that are stopped for 90 s, and pairs.
"""

import os
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.end_to_end.harbour import COMMANDS, ENVIRONMENT, Harbour, undeclared
from tests.support.running_weir import RunningWeir

pytestmark = pytest.mark.spark
# The control plane without Redis and Spark, whose restarts take most of the time.
LIGHT = [name for name in COMMANDS if name not in ("redis", "agent", "driver")]
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


def test_an_execution_survives_the_death_of_each_process(harbour: Harbour) -> None:
    """Each is killed with -9 in turn, Redis and the agent one right after the other."""
    with harbour.flow(0):
        harbour.execute()
        for name in LIGHT:
            harbour.kill([name])
        harbour.kill(["driver"])
        harbour.kill(["redis", "agent"])
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
