"""The door: what is wrong is told, and never raised into the job."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.attached import QUERY, RUN, receiving, warnings_of
from workers.attach import attach
from workers.attach.attachment import job_of


def session(**changed: Any) -> Any:
    """Return what a session tells of itself."""
    context = SimpleNamespace(applicationId="app-1", appName="orders")
    return SimpleNamespace(**({"sparkContext": context, "version": "4.3.0"} | changed))


def listened(application: str) -> tuple[Any, list[Any]]:
    """Return a session and the listeners it has."""
    listeners: list[Any] = []
    context = SimpleNamespace(applicationId=application, appName="orders")
    streams = SimpleNamespace(addListener=listeners.append, removeListener=listeners.remove)
    return session(sparkContext=context, streams=streams), listeners


def idle() -> Any:
    """Return Spark's event of a run that waits."""
    return SimpleNamespace(id=QUERY, runId=RUN, timestamp="2026-01-02T03:04:05.000Z")


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
    assert [record.message.startswith("not attached") for record in warnings_of(caplog)] == [True]


def test_attaching_twice_is_attaching_once() -> None:
    """The cell of a notebook is run again and again."""
    spark, listeners = listened("app-1")
    with receiving() as weir:
        first = attach(spark, weir.url, "weir_x")
        assert attach(spark, f"{weir.url}/", "weir_x") is first
        assert len(listeners) == 1
        assert first is not None
        first.detach()


def test_a_detached_job_tells_what_waited_and_then_nothing() -> None:
    """Its queries go on, so it does not say that it is over."""
    spark, listeners = listened("app-1")
    with receiving() as weir:
        attachment = attach(spark, weir.url, "weir_x")
        assert attachment is not None
        weir.wait_for(1)
        listener = listeners[0]
        listener.onQueryIdle(idle())
        attachment.detach()
        assert listeners == []
        assert [one["kind"] for one in weir.wait_for_events(1)] == ["idle"]
        assert not any(told["ended"] for told in weir.messages)
        count = len(weir.messages)
        listener.onQueryIdle(idle())
        attachment.detach()
        assert len(weir.messages) == count


def test_a_new_application_ends_the_report_of_the_one_before() -> None:
    """A process has one application at a time; the old one would look alive for ever."""
    with receiving() as weir:
        old = attach(listened("app-1")[0], weir.url, "weir_x")
        weir.wait_for(1)
        new = attach(listened("app-2")[0], weir.url, "weir_x")
        assert old is not None
        assert new is not None
        told = weir.wait_for(3)
        ended = [one["job"]["application"] for one in told if one["ended"]]
        assert (ended, new.reporting) == (["app-1"], True)
        new.detach()


def test_an_event_that_cannot_be_read_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Another Spark may speak otherwise; its queries must not feel it."""
    spark, listeners = listened("app-1")
    with receiving() as weir:
        attachment = attach(spark, weir.url, "weir_x")
        assert attachment is not None
        for _ in range(3):
            listeners[0].onQueryProgress(SimpleNamespace(progress=SimpleNamespace(json="{")))
        listeners[0].onQueryIdle(idle())
        assert [one["kind"] for one in weir.wait_for_events(1)] == ["idle"]
        attachment.detach()
    assert len(warnings_of(caplog)) == 1


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
