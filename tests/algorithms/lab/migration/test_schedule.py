"""Phases: nobody sends or receives twice at once, everything is sent, the total is the optimum."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem
from algorithms.lab.migration.schedule import Schedule, schedule_transfers


@st.composite
def matrices(draw: st.DrawFn) -> Any:
    nodes = draw(st.integers(1, 7))
    amounts = st.one_of(st.just(0), st.integers(0, 1000), st.floats(1e-9, 1e12))
    matrix = np.array([[draw(amounts) for _ in range(nodes)] for _ in range(nodes)], float)
    np.fill_diagonal(matrix, 0)
    return matrix


def check(matrix: Any, schedule: Schedule) -> None:
    matrix = np.asarray(matrix, float)
    sent = np.zeros_like(matrix)
    at = 0.0
    for phase in schedule.phases:
        sources = [transfer.source for transfer in phase.transfers]
        targets = [transfer.target for transfer in phase.transfers]
        assert len(set(sources)) == len(sources)
        assert len(set(targets)) == len(targets)
        assert phase.start == pytest.approx(at)
        at += phase.duration
        for source, target, amount in phase.transfers:
            assert 0 < amount <= phase.duration
            sent[source, target] += amount
    optimum = max(matrix.sum(axis=0).max(), matrix.sum(axis=1).max())
    assert sent == pytest.approx(matrix, rel=1e-9, abs=1e-9 * optimum)
    assert schedule.total == pytest.approx(optimum, rel=1e-12)
    assert sum(phase.duration for phase in schedule.phases) == pytest.approx(optimum, rel=1e-12)


@given(matrices())
@settings(deadline=None)
def test_everything_is_sent_in_the_least_time(matrix: Any) -> None:
    check(matrix, schedule_transfers(matrix))


def test_whole_bytes_are_scheduled_exactly() -> None:
    draw = np.random.default_rng(0)
    matrix = draw.integers(0, 2**40, (64, 64))
    np.fill_diagonal(matrix, 0)
    schedule = schedule_transfers(matrix)
    assert schedule.total == max(matrix.sum(axis=0).max(), matrix.sum(axis=1).max())
    check(matrix, schedule)


def test_nothing_to_send_takes_no_time() -> None:
    assert schedule_transfers([[0, 0], [0, 0]]) == Schedule((), 0.0)
    assert schedule_transfers(np.zeros((0, 0))) == Schedule((), 0.0)


@pytest.mark.parametrize(
    ("matrix", "where"),
    [
        ([[0, 1]], "transfers"),
        ([0, 1], "transfers"),
        ([[0, 1], [2]], "transfers"),
        ([[0, -1], [0, 0]], "transfers[0][1]"),
        ([[0, float("nan")], [0, 0]], "transfers[0][1]"),
        ([[1, 0], [0, 0]], "transfers[0][0]"),
        ("ab", "transfers"),
    ],
)
def test_bad_input_names_its_place(matrix: Any, where: str) -> None:
    with pytest.raises(BadProblem) as refusal:
        schedule_transfers(matrix)
    assert refusal.value.where == where
