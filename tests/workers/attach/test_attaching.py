"""The door: what is wrong is told, and never raised into the job."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from workers.attach import attach
from workers.attach.attaching import job_of


def session(**changed: Any) -> Any:
    """Return what a session tells of itself."""
    context = SimpleNamespace(applicationId="app-1", appName="orders")
    return SimpleNamespace(**({"sparkContext": context, "version": "4.3.0"} | changed))


@pytest.mark.parametrize(
    ("spark", "url", "token"),
    [
        (None, "https://weir.example", "weir_x"),
        (session(), "weir.example", "weir_x"),
        (session(), "https://weir.example", ""),
        (session(), "https://weir.example", None),
        (session(), None, "weir_x"),
        # No streams to listen to: not a Spark session.
        (session(), "https://weir.example", "weir_x"),
    ],
)
def test_what_is_wrong_is_one_warning_and_no_exception(
    spark: Any, url: Any, token: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "weir.attach"):
        assert attach(spark, url, token) is None
    assert [record.message.startswith("not attached") for record in caplog.records] == [True]


def test_a_job_is_known_by_its_application() -> None:
    assert job_of(session(), None) == {
        "application": "app-1", "name": "orders", "spark_version": "4.3.0",
    }  # fmt: skip
    assert job_of(session(), "nightly " * 90)["name"] == ("nightly " * 90)[:200]


def test_a_session_without_a_context_has_an_id_of_its_own() -> None:
    """Spark Connect: the server's application may be many people's."""
    first, second = (job_of(SimpleNamespace(version="4.3.0"), None) for _ in range(2))  # type: ignore[arg-type]
    assert first["application"].startswith("session-")
    assert first["application"] != second["application"]
