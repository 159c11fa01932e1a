"""A sweep on Spark gives the table of the Lab's worker, reports rows, and can be cancelled."""

import time

import psutil
import pytest

from algorithms.lab.experiment import ResultRow
from algorithms.lab.experiments import experiment
from controlplane import lab
from controlplane.child_processes.trees import is_alive
from controlplane.lab.engines import HERE, SPARK, Sweep, compute_here
from controlplane.models import LabRun
from tests.support.cluster import actor
from workers.lab.sweeps import run_on_spark

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("lab")]


@pytest.fixture(autouse=True)
def unsent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests run what they request themselves."""
    monkeypatch.setattr("controlplane.lab.requests.send_on_commit", lambda *message: None)


TINY = {"queries": 500, "servers": 5, "seeds": 2}
ENGINES = {**HERE, SPARK: run_on_spark}


def sweep(master: str) -> Sweep:
    chosen = experiment("placement", "fig4a")
    return Sweep(
        chosen, chosen.parameters.from_mapping(TINY), (1.5, 3.0), ("least_cost", "on_rand"), master
    )


def test_the_table_is_that_of_the_worker_and_rows_arrive_in_between() -> None:
    """Also their order; only measured times differ."""
    here = compute_here(sweep(""), lambda share: None, lambda row: None)
    shares: list[float] = []
    rows: list[ResultRow] = []
    there = run_on_spark(sweep("local[2]"), shares.append, rows.append)
    timed = here.columns.index("seconds")
    assert [row[:timed] + row[timed + 1 :] for row in there.rows] == [
        row[:timed] + row[timed + 1 :] for row in here.rows
    ]
    assert {row.cells for row in rows} == set(there.rows)
    assert shares == sorted(shares)
    assert (shares[0], len(shares)) == (0.0, 5)
    assert shares[-1] == pytest.approx(1.0)


def test_a_run_on_spark_is_cancelled_with_its_processes() -> None:
    """The JVM and its Python workers end with the child; rows of finished trials stay.

    Also after a sweep in this process, whose JVM the child must not use.
    """
    options = lab.RunOptions(master="local[2]")
    large = {"queries": 20_000, "seeds": 50}
    by = actor()
    run = lab.request(by, "placement", "fig4a", large, [2.0], ["on_rand"], options)
    before = set(psutil.Process().children(recursive=True))
    started: set[psutil.Process] = set()
    cancelled: list[float] = []

    def cancel_when_visible() -> bool:
        run.refresh_from_db()
        if run.table and not cancelled:
            started.update(set(psutil.Process().children(recursive=True)) - before)
            cancelled.append(time.monotonic())
            lab.cancel(by, run)
        return False

    lab.run(run.pk, cancel_when_visible, ENGINES)
    row = LabRun.objects.get()
    assert cancelled, row.error
    # A tenth of a second on a quiet machine; all of the sweep takes minutes.
    assert time.monotonic() - cancelled[0] < 30
    assert len(started) > 1
    assert not any(map(is_alive, started))
    assert (row.state, bool(row.table["rows"])) == ("cancelled", True)


def test_a_worker_without_spark_fails_the_run() -> None:
    """With a code, instead of computing it elsewhere."""
    options = lab.RunOptions(master="local[2]")
    run = lab.request(actor(), "placement", "fig4a", TINY, [2.0], ["on_rand"], options)
    lab.run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.error_code) == ("failed", "no_engine")
