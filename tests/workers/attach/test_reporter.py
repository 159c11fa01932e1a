"""The sending thread against a real server: order, resending, giving up, the end."""

import logging
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.attached import JOB, event, progress_event, receiving, warnings_of
from tests.support.redis_server import free_port
from workers.attach.reporter import (
    LONGEST_RETRY_SECONDS,
    PATH,
    EventQueue,
    JobReporter,
    Poster,
    Unreachable,
    delay_before,
)

AT = datetime(2026, 1, 2, tzinfo=UTC)
TOKEN = "weir_secret"


def reporter(url: str, waiting: EventQueue | None = None, **more: Any) -> JobReporter:
    """Return a reporter that hurries."""
    quick: dict[str, Any] = {"every": 0.01, "beat": 60.0, "delay": lambda _: 0.01}
    return JobReporter(Poster(url, TOKEN, timeout=5), JOB, waiting, **(quick | more))


def batches(told: list[dict[str, Any]]) -> list[int]:
    return [one["progress"]["batch"] for one in told if one["kind"] == "progress"]


def test_the_first_message_says_who_reports() -> None:
    """At once and without events: a wrong token is told before the first batch."""
    with receiving() as weir:
        one = reporter(weir.url)
        one.start()
        assert weir.wait_for(1)[0] == {"job": JOB, "dropped": 0, "ended": False, "events": []}
        assert weir.headers["Authorization"] == f"Bearer {TOKEN}"
        assert weir.headers["path"] == PATH
        one.close(5, ended=False)


def test_events_arrive_in_order() -> None:
    with receiving() as weir:
        one = reporter(weir.url)
        one.start()
        for batch in range(50):
            one.put(progress_event(batch, AT))
        assert batches(weir.wait_for_events(50)) == list(range(50))
        one.close(5, ended=False)


def test_a_quiet_job_gives_signs_of_life() -> None:
    with receiving() as weir:
        one = reporter(weir.url, beat=0.05)
        one.start()
        assert all(told["events"] == [] for told in weir.wait_for(3))
        one.close(5, ended=False)


@pytest.mark.parametrize("trouble", [500, 502, 503, 429, 404, 302])
def test_a_message_that_was_not_taken_is_sent_again_as_it_was(trouble: int) -> None:
    """Also when it was stored and only the answer was lost: Weir stores a batch once."""
    with receiving(202, trouble, trouble, 202) as weir:
        one = reporter(weir.url)
        one.start()
        weir.wait_for(1)
        one.put(progress_event(1, AT))
        assert batches(weir.wait_for_events(3)) == [1, 1, 1]
        one.put(progress_event(2, AT))
        assert batches(weir.wait_for_events(4)) == [1, 1, 1, 2]
        assert len(set(weir.raw[1:4])) == 1
        assert one.dropped == 0
        one.close(5, ended=False)


def test_a_redirect_does_not_get_the_token() -> None:
    """It would go to whatever address the answer names."""
    with receiving(302) as weir:
        Poster(weir.url, TOKEN)(b'{"events": []}')
        assert weir.headers["path"] == PATH
        assert len(weir.messages) == 1


@pytest.mark.parametrize("refusal", [401, 403])
def test_a_refused_token_ends_it_with_one_warning(
    refusal: int, caplog: pytest.LogCaptureFixture
) -> None:
    with receiving(refusal) as weir, caplog.at_level(logging.WARNING, "weir.attach"):
        one = reporter(weir.url)
        one.put(event("started", AT))
        one.start()
        weir.wait_for(1)
        one.close(5, ended=False)
        assert not one.alive
        one.put(event("idle", AT))
        assert len(weir.messages) == 1
    assert [str(refusal) in record.message for record in warnings_of(caplog)] == [True]
    assert TOKEN not in caplog.text


def test_a_spoiled_message_is_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """It would be refused for ever; what comes after it must not wait."""
    with receiving(202, 422, 202) as weir:
        one = reporter(weir.url)
        one.start()
        weir.wait_for(1)
        one.put(progress_event(1, AT))
        weir.wait_for_events(1)
        one.put(progress_event(2, AT))
        assert batches(weir.wait_for_events(2)) == [1, 2]
        assert weir.messages[-1]["dropped"] == 1
        one.close(5, ended=False)
    assert len(warnings_of(caplog)) == 1


def test_a_message_that_weir_stumbles_over_does_not_hold_up_the_rest() -> None:
    """A fault of Weir's own must not end in nothing being told any more."""
    with receiving(202, *[500] * 8, 202) as weir:
        one = reporter(weir.url)
        one.start()
        weir.wait_for(1)
        one.put(progress_event(1, AT))
        weir.wait_for_events(8)
        one.put(progress_event(2, AT))
        assert batches(weir.wait_for_events(9)) == [1] * 8 + [2]
        assert one.dropped == 1
        one.close(5, ended=False)


def test_the_end_is_told_with_the_last_events() -> None:
    with receiving() as weir:
        one = reporter(weir.url, every=30.0)
        one.start()
        weir.wait_for(1)
        one.put(event("terminated", AT, error=""))
        one.close(5, ended=True)
        last = weir.wait_for(2)[-1]
        assert (last["ended"], last["events"][0]["kind"]) == (True, "terminated")


def test_what_waited_during_an_outage_comes_after_it() -> None:
    """Its newest thousand events, in order, with the number of those that were dropped."""
    port = free_port()
    one = reporter(f"http://127.0.0.1:{port}", EventQueue(100))
    one.start()
    for batch in range(500):
        one.put(progress_event(batch, AT))
    assert one.dropped >= 400
    with receiving() as weir:
        # The same reporter, its Weir now at the port that answers.
        vars(one)["_post"] = Poster(weir.url, TOKEN)
        told = batches(weir.wait_for_events(100))
        assert told[-1] == 499
        assert told == sorted(told)
        one.close(5, ended=False)
        assert weir.messages[-1]["dropped"] == one.dropped


def test_a_weir_that_is_away_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    one = reporter(f"http://127.0.0.1:{free_port()}")
    one.put(event("started", AT))
    one.start()
    one.close(5, ended=True)
    assert [record.levelname for record in warnings_of(caplog)] == ["WARNING"]
    assert one.dropped == 1


def test_the_end_of_a_job_waits_a_bounded_time_for_a_silent_weir() -> None:
    """A Weir that accepts and never answers holds nobody up."""
    with receiving() as weir:
        weir.hold.clear()
        one = reporter(weir.url)
        one.put(event("started", AT))
        one.start()
        begun = time.monotonic()
        one.close(0.2, ended=True)
        # An answer is waited for 5 s.
        assert time.monotonic() - begun < 4.5
        assert not one.alive


def test_putting_costs_the_caller_little_while_weir_is_silent() -> None:
    """Spark's listener thread must not feel it: the median of 1000 is far below a millisecond."""
    with receiving() as weir:
        weir.hold.clear()
        one = reporter(weir.url)
        one.start()
        told, took = progress_event(1, AT), []
        for _ in range(1000):
            begun = time.perf_counter()
            one.put(told)
            took.append(time.perf_counter() - begun)
        assert sorted(took)[500] < 0.01
        one.close(0, ended=False)


def test_delays_double_up_to_a_minute_with_jitter_over_the_upper_half() -> None:
    assert [delay_before(n, lambda: 1.0) for n in (1, 2, 3, 4)] == [1, 2, 4, 8]
    assert delay_before(1, lambda: 0.0) == 0.5
    assert delay_before(10_000, lambda: 1.0) == LONGEST_RETRY_SECONDS


@pytest.mark.parametrize("url", ["", "weir.example", "ftp://weir.example", "https://", "file:///x"])
def test_an_unusable_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        Poster(url, TOKEN)


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "é"])
def test_an_unusable_token_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(ValueError, match="token") as refusal:
        Poster("https://weir.example", token)
    assert not token or token not in str(refusal.value)


def test_nobody_there_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        Poster(f"http://127.0.0.1:{free_port()}", TOKEN)(b"{}")


def test_plain_http_to_another_machine_is_warned_of() -> None:
    assert Poster("http://weir.example", TOKEN).plain
    assert not Poster("http://127.0.0.1:8000/", TOKEN).plain
    assert not Poster("http://localhost", TOKEN).plain
    assert not Poster("https://weir.example", TOKEN).plain
