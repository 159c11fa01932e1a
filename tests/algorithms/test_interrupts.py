"""An interrupt that was swallowed somewhere stops the run at its next report."""

import signal
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread

import pytest

from algorithms.interrupts import interruptible


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is heard: a shell lets its background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_a_swallowed_interrupt_is_raised_again() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interruptible() as report:
        report(0.1)
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            report(0.2)
    assert signal.getsignal(signal.SIGINT) is before


def test_reports_are_passed_on() -> None:
    heard: list[float] = []
    with interruptible(heard.append) as report:
        report(0.5)
    assert heard == [0.5]


def test_other_threads_go_on_as_they_are() -> None:
    """Signals can only be taken in the main thread; a task may run in another."""
    heard: list[float] = []

    def work() -> None:
        with interruptible(heard.append) as report:
            report(1.0)

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert heard == [1.0]
