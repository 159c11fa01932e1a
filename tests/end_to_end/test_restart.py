"""Ending Weir, starting it again, and killing its parts one by one."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.surviving import PROCESSES, Migration, kill, made
from tests.support.running_weir import RunningWeir

pytestmark = pytest.mark.spark


def processes_of(data: Path) -> list[psutil.Process]:
    """Return every process that was started for this data directory, however deep."""
    return [process for process in psutil.process_iter() if _belongs(process, data)]


def _belongs(process: psutil.Process, data: Path) -> bool:
    try:
        return process.environ().get("WEIR_RUN") == str(data)
    except psutil.Error:
        return False


def stored(data: Path, sql: str) -> int:
    """Return one number from the database of a Weir that has ended."""
    connection = sqlite3.connect(data / "db.sqlite3")
    try:
        return int(connection.execute(sql).fetchone()[0])
    finally:
        connection.close()


VERSION = "select routing_version from controlplane_cluster where slug = 'sf'"
BATCH = "select last_batch from controlplane_cluster where slug = 'sf'"


# Starting takes most of the time: the tests follow each other on one Weir.
@pytest.fixture(scope="module")
def weir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeir]:
    """A Weir that the first test starts."""
    data = tmp_path_factory.mktemp("restart") / "data"
    running = RunningWeir(data, {"WEIR_DEMO_MICE": "100"})
    running.start()
    yield running
    running.end()
    assert processes_of(data) == []


def test_interrupt_leaves_no_process_and_the_next_start_goes_on(weir: RunningWeir) -> None:
    """Ctrl-C ends web, workers, agent, Spark's JVM and its Python workers; the data stays."""
    first_login = weir.login()
    assert processes_of(weir.data), "the processes of this run must be recognised"
    assert weir.interrupt() == 0
    assert processes_of(weir.data) == []
    version, batch = stored(weir.data, VERSION), stored(weir.data, BATCH)
    assert version > 0
    weir.start()
    assert weir.login() == first_login
    assert stored(weir.data, VERSION) >= version
    assert stored(weir.data, BATCH) > batch, "the same checkpoint must have gone on"


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
