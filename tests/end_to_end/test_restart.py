"""Killing the parts of Weir one by one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.surviving import PROCESSES, Migration, kill, made
from tests.support.running_weir import RunningWeir

pytestmark = pytest.mark.spark


@pytest.fixture
def weir(tmp_path: Path) -> Iterator[RunningWeir]:
    """A Weir with many queries to move."""
    running = RunningWeir(tmp_path / "data", {"WEIR_DEMO_MICE": "100"})
    running.start()
    yield running
    running.end()
    assert running.processes() == []


@pytest.mark.skipif("WEIR_SCHEDULES" not in os.environ, reason="kills all processes: make nightly")
def test_an_execution_survives_the_death_of_each_process(weir: RunningWeir) -> None:
    """Each is killed once with -9 in the middle of a migration, which ends with each move once."""
    migration = Migration(weir)
    for name in PROCESSES:
        migration.goes_on()
        kill(weir, name)
    migration.goes_on()
    migration.hurry()
    seen = migration.until(lambda seen: seen["state"] == "done")
    starts = [first for first, *_ in seen["steps"]]
    assert starts == [0, *(past for _, past, *_ in seen["steps"])][:-1]
    assert seen["steps"][-1][1] == seen["moves"]
    assert len(seen["moved"]) == len(set(seen["moved"])), "no query is moved twice"
    assert len(made(seen)) >= 2 * (len(PROCESSES) + 1)
