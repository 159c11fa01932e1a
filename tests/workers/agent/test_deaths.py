"""What is a crash loop, and what its page says."""

import pytest

from workers.agent import causes
from workers.agent.causes import Death, cause_of, described, loop_of


def death(at_s: float, cause: str = "exit", batch: int | None = None) -> Death:
    """Return a death with its cause as the detail."""
    return Death(at_s, cause, f"{cause} happened", 1, batch)


def test_two_of_one_kind_are_no_loop() -> None:
    assert loop_of([death(1, batch=5), death(2, batch=5)], 3) is None


def test_one_batch_that_ends_the_driver_three_times_is_a_loop() -> None:
    """Whatever the causes: by memory first, then by silence."""
    loop = loop_of([death(1, "memory", 5), death(2, "memory", 5), death(3, "exit", 5)], 4)
    assert loop is not None
    assert (loop.count, loop.batch, loop.cause) == (3, 5, "exit")
    assert str(loop).startswith("batch 5 has ended the driver 3 times: exit happened [exit]. ")


def test_one_cause_at_several_batches_is_a_loop() -> None:
    loop = loop_of([death(1, "disk-full", n) for n in (5, 6, 7, 8)], 4)
    assert loop is not None
    assert (loop.count, loop.batch) == (4, None)
    assert "Free space on the disk" in str(loop)


def test_another_batch_and_another_cause_break_the_row() -> None:
    assert loop_of([death(1, "a", 5), death(2, "b", 6), death(3, "a", 5)], 4) is None


def test_deaths_of_yesterday_do_not_count() -> None:
    assert loop_of([death(1, batch=5), death(2, batch=5), death(9000, batch=5)], 9001) is None


@pytest.mark.parametrize(
    ("code", "error", "cause"),
    [
        (1, "java.io.IOException: No space left on device", causes.DISK),
        (1, "java.lang.OutOfMemoryError: Java heap space", causes.MEMORY),
        (1, "redis.exceptions.OutOfMemoryError: command not allowed when used memory > "
            "'maxmemory'.", "redis-memory"),
        (1, "redis.exceptions.ReadOnlyError: READONLY You can't write", "redis-read-only"),
        (1, "StreamingQueryException: Python worker failed to connect back.", causes.SLOW_WORKER),
        (-9, "INFO batch 7", causes.KILLED),
        (1, "ValueError: x", causes.EXIT),
    ],
)  # fmt: skip
def test_the_last_words_show_the_cause(code: int, error: str, cause: str) -> None:
    assert cause_of(code, error) == cause


def test_a_signal_is_named() -> None:
    assert described(-9, "") == "ended by signal 9 SIGKILL"
    assert described(3, "") == "ended with code 3"
