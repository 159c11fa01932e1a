"""Logs stay small, and what matters in them is found."""

from pathlib import Path

import pytest

from controlplane.processes.runtime.supervisor import Follower, last_error, rotate, tail


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the path of a log that does not exist yet."""
    return tmp_path / "x.log"


def test_a_large_log_moves_away_while_its_writer_goes_on(log: Path) -> None:
    """The writer keeps its descriptor: renaming would take the log along with it."""
    with log.open("ab", buffering=0) as writer:
        writer.write(b"old\n" * 100)
        rotate(log, limit=50)
        writer.write(b"new\n")
    assert log.read_text() == "new\n"
    assert log.with_name("x.log.1").read_text() == "old\n" * 100


def test_only_new_whole_lines_that_warn_are_forwarded(log: Path) -> None:
    """A half-written line is told when it is whole."""
    log.write_text("WARNING old\n")
    follower = Follower(log)
    follower.skip()
    with log.open("a") as writer:
        writer.write("INFO fine\nERROR one\nWARN")
        writer.flush()
        assert follower.alarms() == ["ERROR one"]
        writer.write("ING two\n")
        writer.flush()
    assert follower.alarms() == ["WARNING two"]


def test_a_cut_log_is_followed_from_its_new_start(log: Path) -> None:
    """After `keep_small` the old position lies behind the end."""
    log.write_text("INFO a long line that was there before\n")
    follower = Follower(log)
    follower.skip()
    log.write_text("ERROR new\n")
    assert follower.alarms() == ["ERROR new"]


def test_the_last_error_is_that_of_this_run(log: Path) -> None:
    """The log keeps earlier runs; their errors say nothing of this one."""
    log.write_text("ValueError: of yesterday\n")
    start = log.stat().st_size
    with log.open("a") as writer:
        writer.write("starting\n")
    assert last_error(log, start) == "starting"
    with log.open("a") as writer:
        writer.write("KeyError: 'x'\nat Some.java:12\n\n")
    assert last_error(log, start) == "KeyError: 'x'"


def test_a_missing_log_has_no_lines(log: Path) -> None:
    """A child that could not be started never wrote one."""
    assert tail(log) == []
    assert last_error(log) == ""
