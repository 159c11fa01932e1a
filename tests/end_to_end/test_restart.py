"""Ending Weir and starting it again."""

import sqlite3
from pathlib import Path

import psutil
import pytest

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


def test_interrupt_leaves_no_process_and_the_next_start_goes_on(tmp_path: Path) -> None:
    """Ctrl-C ends web, workers, agent, Spark's JVM and its Python workers; the data stays."""
    weir = RunningWeir(tmp_path / "data", {"WEIR_DEMO_MICE": "5"})
    try:
        weir.start()
        first_login = weir.login()
        assert processes_of(weir.data), "the processes of this run must be recognised"
        assert weir.interrupt() == 0
        assert processes_of(weir.data) == []
        version, batch = stored(weir.data, VERSION), stored(weir.data, BATCH)
        assert version > 0
        weir.start()
        assert weir.login() == first_login
    finally:
        weir.end()
    assert processes_of(weir.data) == []
    assert stored(weir.data, VERSION) >= version
    assert stored(weir.data, BATCH) > batch, "the same checkpoint must have gone on"
