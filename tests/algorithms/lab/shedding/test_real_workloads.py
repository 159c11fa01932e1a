"""Recorded rates: what the file has, scaled to a mean."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from algorithms.errors import BadProblem
from algorithms.lab.datasets import DATA_FOLDER
from algorithms.lab.shedding.real_workloads import RATES_FILE, recorded_rates, recorded_traces


@pytest.mark.parametrize(
    ("trace", "windows", "first", "second"),
    [
        ("bc_small_vs_large_frames_100ms", 1_585, 257.19, 121.07),
        ("bc_two_halves_10ms", 7_929, 380.73, 375.92),
        ("llm_code_vs_conv_10s", 222, 3.14, 6.02),
    ],
)
def test_a_trace_has_the_rates_of_its_streams(
    trace: str, windows: int, first: float, second: float
) -> None:
    rates = recorded_rates(trace)
    assert rates.shape == (windows, 2)
    assert rates.mean(axis=0) == pytest.approx([first, second], abs=0.005)


def test_there_are_seven_traces() -> None:
    assert len(recorded_traces()) == 7


def test_a_mean_scales_both_inputs_alike() -> None:
    plain, scaled = (
        recorded_rates("llm_code_vs_conv_10s"),
        recorded_rates("llm_code_vs_conv_10s", 8),
    )
    assert scaled.mean() == pytest.approx(8)
    assert scaled[:, 0].mean() / scaled[:, 1].mean() == pytest.approx(
        plain[:, 0].mean() / plain[:, 1].mean()
    )


def test_a_caller_may_change_its_rates() -> None:
    recorded_rates("llm_code_vs_conv_10s")[:] = 0
    assert np.any(recorded_rates("llm_code_vs_conv_10s") > 0)


def test_an_unknown_trace_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(BadProblem, match="'tcp' is unknown; known: bc_small"):
        recorded_rates("tcp")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot be read"),
        ("trace,i,a,b\nx,0,1,2\n", "needs the columns trace, window_ms, a and b"),
        ("trace,window_ms,i,a,b\nx,0,0,1,2\n", "needs the columns"),
        ("trace,window_ms,i,a,b\nx,10,0,many,2\n", "needs the columns"),
        ("trace,window_ms,i,a,b\nx,10,0,0,0\n", "has no events in x"),
        ("trace,window_ms,i,a,b\n", "has no rows"),
    ],
)
def test_a_bad_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, why: str
) -> None:
    if text is not None:
        (tmp_path / RATES_FILE).write_bytes(gzip.compress(text.encode()))
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    with pytest.raises(BadProblem, match=why) as caught:
        recorded_rates("x")
    assert RATES_FILE in caught.value.where
