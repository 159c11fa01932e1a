"""A real PySpark job with the two lines, against a served Weir and against none."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from controlplane.access import tokens
from controlplane.models import AttachedJob, AttachedQuery
from tests.support import cluster as made
from tests.support.redis_server import free_port
from workers.attach.attachment import FLUSH_SECONDS, SETTLE_SECONDS

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("class_archive"),
    pytest.mark.django_db(transaction=True),
]
# For a busy machine to end a Python and a Java process.
ROOM_SECONDS = 5.0
JOB = Path(__file__).with_name("job.py")
ROOT = Path(__file__).parents[3]


def ran(url: str, token: str) -> tuple[dict[str, Any], str]:
    """Run the job to its end; return what it found and what it wrote to its log."""
    done = subprocess.run(
        [sys.executable, str(JOB), url, token],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found, done.stderr


def test_a_real_job_shows_up_with_its_progress_and_its_end(
    live_server: LiveServer, redis_url: str
) -> None:
    user = made.actor("viewer").user
    assert isinstance(user, User)
    found, log = ran(live_server.url, tokens.create(user, "job"))
    job = AttachedJob.objects.get()
    assert (job.application, job.name, job.owner) == (
        found["application"], "somebody's job", "a-viewer",
    )  # fmt: skip
    assert job.ended_at is not None
    assert job.dropped == 0
    assert_counted(AttachedQuery.objects.get(name="rows per key"), found)
    broken = AttachedQuery.objects.get(name="broken")
    assert broken.state == "failed"
    assert "is not to my taste" in broken.detail
    assert "\tat " not in broken.detail
    # On a busy machine one message may have had to go twice; nothing else may be told.
    told = [line for line in log.splitlines() if "Weir" in line]
    assert all("trying again quietly" in line for line in told), told
    assert_shown(user)


def assert_counted(query: AttachedQuery, found: dict[str, Any]) -> None:
    """The query is stored as its job saw it, every batch of it."""
    assert (str(query.run_id), query.state) == (found["run"], "terminated")
    batches = list(query.progress.order_by("batch").values_list("batch", flat=True))
    assert batches == list(range(len(batches)))
    assert len(batches) > found["batches"] >= 3
    assert query.last["state_rows"] == found["state_rows"] == 5
    assert query.last["state_bytes"] > 0
    assert query.last["phases"]["addBatch"] > 0
    assert query.sources[0]["description"].startswith("RateStreamV2[rowsPerSecond=50")
    assert sum(one.values["rows"] for one in query.progress.all()) > 0


def assert_shown(user: User) -> None:
    """The pages show it to whoever may see."""
    browser = Client()
    browser.force_login(user)
    listed = browser.get("/attached/").content.decode()
    assert "rows per key" in listed
    query = AttachedQuery.objects.get(name="rows per key")
    figures = browser.get(f"/attached/queries/{query.pk}/charts.json?range=1h").json()["figures"]
    assert set(figures) == {"rates", "duration", "state", "memory"}
    assert figures["state"]["data"][0]["y"][-1] == 5


# By day `test_reporter.py` does without Spark, and the test above attaches to a real job.
@pytest.mark.nightly("spark")
def test_a_job_whose_weir_is_down_runs_on_unharmed() -> None:
    """It is told once, in its log, and ends in its own time."""
    found, log = ran(f"http://127.0.0.1:{free_port()}", "weir_any")
    assert (found["batches"] >= 3, found["state_rows"], found["failure"]) == (True, 5, True)
    assert log.count("Weir cannot be reached") == 1
    assert time.time() - found["done_at"] < SETTLE_SECONDS + FLUSH_SECONDS + ROOM_SECONDS
