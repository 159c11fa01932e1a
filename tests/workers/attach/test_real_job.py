"""A real PySpark job with the two lines, against a served Weir and against none."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from controlplane.cli.main import main
from controlplane.installation.env import ROOT
from controlplane.integrations.attached_advice import SKEWED_BATCHES, advice_of
from controlplane.models import AttachedJob, AttachedQuery
from tests.docs.test_samples import commands, samples
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
SAMPLES = samples("docs/attach.md")
(LINES,) = (text for kind, text in SAMPLES if kind == "python")
# Of the page: how to write the zip, to submit a job with it, and to create a token.
ZIP, SUBMIT, TOKEN = (
    shlex.split(command, comments=True)[1:]
    for kind, text in SAMPLES
    if kind == "sh"
    for command, _ in commands(text)
)


def ran(
    url: str, token: str, folder: Path, command: Sequence[str] = (sys.executable, JOB.name)
) -> tuple[dict[str, Any], str]:
    """Run the job to its end; return what it found and what it wrote to its log."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    subprocess.run([sys.executable, *ZIP], cwd=folder, env=environment, check=True)
    shutil.copy(JOB, folder)
    done = subprocess.run(
        [*command, url, token, LINES],
        cwd=folder,
        # With the client alone.
        env={**environment, "PYTHONPATH": ZIP[-1]},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    # Under spark-submit the errors of Python are in its output, and may follow the job's line.
    found: dict[str, Any] = json.loads(next(line for line in lines if line.startswith("{")))
    return found, done.stdout + done.stderr


def test_a_real_job_shows_up_with_its_progress_and_its_end(
    live_server: LiveServer, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    user = made.actor("viewer").user
    assert isinstance(user, User)
    main(["a-viewer" if word == "USER" else word for word in TOKEN])
    found, log = ran(live_server.url, capsys.readouterr().out.strip(), tmp_path)
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
    assert_advised()


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


def assert_advised() -> None:
    """A key has most of the rows."""
    query = AttachedQuery.objects.get(name="one hot key")
    summaries = list(query.progress.filter(values__tasks__isnull=False))
    assert len(summaries) >= SKEWED_BATCHES
    assert {row.values["tasks"]["partitions"] for row in summaries} == {4}
    # A look is at the newest jobs; Spark's hash spreads the rows of the first batch so.
    newest = query.progress.filter(values__tasks__isnull=False).latest("batch").values["tasks"]
    assert (newest["records"], newest["median_records"]) != (3082, 334)
    # Advice is for runs that have not ended.
    query.state = AttachedQuery.State.RUNNING
    assert "skewed_partitions" in [item.code for item in advice_of(query)]


# By day `test_reporter.py` does without Spark, and the test above attaches to a real job.
@pytest.mark.nightly("spark")
def test_a_job_whose_weir_is_down_runs_on_unharmed(tmp_path: Path) -> None:
    """It is told once, in its log, and ends in its own time."""
    submit = (str(Path(sys.executable).with_name("spark-submit")), *SUBMIT)
    found, log = ran(f"http://127.0.0.1:{free_port()}", "weir_any", tmp_path, submit)
    assert (found["batches"] >= 3, found["state_rows"], found["failure"]) == (True, 5, True)
    assert log.count("Weir cannot be reached") == 1
    assert time.time() - found["done_at"] < SETTLE_SECONDS + FLUSH_SECONDS + ROOM_SECONDS
