"""What is sent of Spark's events, and what is not."""

import ast
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tests.support.attached import QUERY, RATE_SOURCE, RUN, spark_progress
from workers.attach import events
from workers.attach.__main__ import ROOM, write_zip

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def measured(**changed: Any) -> dict[str, Any]:
    told = events.progress(json.dumps(spark_progress(7, AT, **changed)))
    found: dict[str, Any] = told["progress"]
    return found


def test_a_progress_is_told_by_its_measures() -> None:
    told = measured()
    assert (told["batch"], told["rows"], told["duration_ms"]) == (7, 50, 500)
    assert (told["input_rate"], told["processed_rate"]) == (25.0, 100.0)
    assert told["phases"]["addBatch"] == 300
    assert told["watermark"] == "2026-01-02T03:04:01.000Z"


def test_state_is_summed_over_operators() -> None:
    assert measured()["state"] == {
        "rows": 60,
        "updated": 6,
        "bytes": 5280,
        "dropped": 2,
        "partitions": 2,
    }
    assert measured(stateOperators=[])["state"] is None


def test_metrics_of_a_source_are_numbers() -> None:
    """Spark writes them as texts; NaN is not JSON."""
    kafka, rate = measured()["sources"]
    assert kafka["metrics"] == {"maxOffsetsBehindLatest": 12.0}
    assert rate["metrics"] == {}
    assert rate["description"] == RATE_SOURCE


def test_what_spark_leaves_out_is_none() -> None:
    """A first batch has no rates, a query without event time no watermark."""
    bare = {"description": "x", "numInputRows": 0}
    told = measured(sources=[bare], eventTime={}, sink={"description": "s", "numOutputRows": 4})
    assert (told["input_rate"], told["watermark"], told["sink"]["rows"]) == (None, None, 4)
    assert measured(eventTime={"watermark": "1970-01-01T00:00:00.000Z"})["watermark"] is None


def test_no_offset_and_no_observed_metric_is_sent() -> None:
    """They may hold what the data holds."""
    sent = json.dumps(events.progress(json.dumps(spark_progress(7, AT))))
    assert not any(name in sent for name in ("startOffset", "endOffset", '"orders": {'))
    assert "secret" not in sent


def test_no_password_leaves_the_job() -> None:
    """Neither in a description, nor in an error, nor in a name."""
    url = "jdbc:postgresql://h/db?user=u&password=hunter2"
    source = {"description": f"JDBC[{url}]", "numInputRows": 0}
    sink = {"description": "jdbc:sqlserver://h;user=u;password=hunter2;encrypt=true"}
    told = [measured(sources=[source], sink=sink), events.terminated(ended(f"no route to {url}"))]
    report = spark_progress(7, AT) | {"name": "copy with token=hunter2"}
    sent = json.dumps([*told, events.progress(json.dumps(report))])
    assert "hunter2" not in sent
    assert sent.count("password=***") == 3


def test_an_event_is_bounded() -> None:
    """Hundreds of sources with long names do not make a message of megabytes."""
    one = {
        "description": "d" * 9000, "numInputRows": 1,
        "metrics": {f"{'m' * 80}{i}": "1" for i in range(500)},
    }  # fmt: skip
    told = measured(sources=[one] * 300, durationMs={str(i): i for i in range(500)})
    assert len(json.dumps(told)) < 64 * 1024
    assert len(told["sources"]) == events.MOST_SOURCES


def test_names_are_what_every_database_keeps() -> None:
    """A NUL or half a character would make a message that is refused for ever."""
    odd = json.dumps(spark_progress(7, AT, name="a\0b\ud800"))
    assert events.progress(odd)["name"] == "ab?"


def ended(exception: str | None, error_class: str | None = None) -> Any:
    return SimpleNamespace(
        id=UUID(QUERY), runId=UUID(RUN), exception=exception, errorClassOnException=error_class
    )


def test_an_orderly_end_has_no_error() -> None:
    told = events.terminated(ended(None))
    assert (told["kind"], told["error"], told["run"]) == ("terminated", "", RUN)


def test_a_failure_is_told_without_stack_plan_and_password() -> None:
    error = (
        "org.apache.X: no such host https://me:pw@db.example/x\n\tat a.b(C.scala:1)\n"
        "\t... 3 more\nCaused by: refused\n=== Streaming Query ===\nLogical Plan: secret"
    )
    told = events.terminated(ended(error, "CONNECT"))
    assert (
        told["error"] == "org.apache.X: no such host https://***@db.example/x\nCaused by: refused"
    )
    assert told["error_class"] == "CONNECT"


def test_a_long_failure_keeps_its_end() -> None:
    """The last lines of a Python traceback say what happened."""
    text = events.reason("begin " + "x" * 5000 + " ZeroDivisionError")
    assert len(text) == events.ERROR_CHARS
    assert text.startswith("begin")
    assert text.endswith("ZeroDivisionError")


@pytest.mark.parametrize(("error_class", "said"), [("CONNECT", "CONNECT"), (None, "failed")])
def test_the_text_of_a_failure_can_be_kept_back(error_class: str | None, said: str) -> None:
    told = events.terminated(ended("secret", error_class), error_text=False)
    assert told["error"] == said


def test_the_client_is_importable_alone(tmp_path: Path) -> None:
    """From the zip that a foreign job carries, without the rest of Weir."""
    write_zip(tmp_path / "weir-attach.zip")
    code = (
        "import sys; from workers.attach import attach;"
        "ours = [m for m in sys.modules if m.split('.')[0] in"
        " ('controlplane', 'algorithms', 'django', 'celery', 'redis')];"
        "print(attach.__module__, ours, 'weir-attach.zip' in sys.modules['workers'].__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(tmp_path / "weir-attach.zip")},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["workers.attach.attachment", "[]", "True"]


@pytest.mark.parametrize("source", sorted(ROOM.glob("*.py")), ids=lambda source: source.name)
def test_the_client_is_written_for_older_pythons(source: Path) -> None:
    """Jobs on PySpark 3.5 run on Python 3.9."""
    ast.parse(source.read_text(), feature_version=(3, 9))
