"""Expected rates from forecasts and meta-data."""

import numpy as np
import pytest

from algorithms.admission.metadata import StreamMetadata, Transition
from algorithms.admission.prediction import (
    CYCLE_PARTS,
    MetadataColumns,
    expectations,
    expected_cycle,
)
from algorithms.lab.admission.workloads import WORKLOADS, WorkloadSettings, draw


def expected(
    history: list[float], metadata: StreamMetadata, horizon: int = 4, forecast: float = 5.0
) -> list[float]:
    rates, _ = expectations(
        np.array([history]), np.full((1, horizon), forecast), MetadataColumns.of([metadata]), 1.0
    )
    row: list[float] = rates[0].tolist()
    return row


def test_without_meta_data_it_is_the_forecast() -> None:
    assert expected([5, 5], StreamMetadata()) == [5, 5, 5, 5]


def test_a_peak_is_expected_at_the_end() -> None:
    assert expected([5, 5], StreamMetadata(peak=9)) == [5, 5, 5, 9]
    assert expected([5, 5], StreamMetadata(peak=3)) == [3, 3, 3, 3]


def test_a_jump_is_expected_at_its_time() -> None:
    """Three periods high, three low; two periods since the last jump."""
    cycle = StreamMetadata(minimum=1, maximum=9, period_s=6, transition=Transition.JUMP)
    assert expected([9, 9, 1, 1], cycle) == [1, 9, 9, 9]
    assert expected([1, 1, 9, 9], cycle) == [9, 1, 1, 1]


def test_before_the_first_jump_the_maximum_is_expected() -> None:
    cycle = StreamMetadata(minimum=1, maximum=9, period_s=6, transition=Transition.JUMP)
    assert expected([1, 1, 1], cycle)[-1] == 9


def test_a_trend_turns_at_the_maximum() -> None:
    cycle = StreamMetadata(minimum=0, maximum=8, period_s=8, transition=Transition.TREND)
    assert expected([2, 4, 6], cycle) == pytest.approx([8, 6, 4, 2])
    assert expected([6, 4, 2], cycle) == pytest.approx([0, 2, 4, 6])


def test_streams_of_equal_meta_data_do_not_influence_each_other() -> None:
    cycle = StreamMetadata(minimum=1, maximum=9, period_s=6, transition=Transition.JUMP)
    rates, known = expectations(
        np.array([[9.0, 9, 1, 1], [5, 5, 5, 5]]),
        np.full((2, 3), 5.0),
        MetadataColumns.of([cycle, StreamMetadata()]),
        1.0,
    )
    assert rates.tolist() == [[1, 9, 9], [5, 5, 5]]
    assert known.tolist() == [True, False]


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_has_the_load_level_that_was_requested(name: str) -> None:
    settings = WorkloadSettings(level=5.0)
    workload = draw(name, settings, 1)
    assert workload.rates.shape == (80, settings.steps)
    load = workload.rates.sum(axis=0) / settings.capacity
    assert load.mean() == pytest.approx(5.0, rel=0.1)
    if name in ("constw", "psfcw", "ptfcw"):
        assert np.ptp(load) < 0.2
    known = MetadataColumns.of(workload.metadata)
    assert (workload.rates.max(axis=1) <= known.maximum * (1 + 1e-9)).all()
    assert (draw(name, settings, 1).rates == workload.rates).all()


def test_the_rate_of_the_period_of_a_jump_gives_its_time() -> None:
    """The last jump was a quarter of a period before the end of the second period."""
    cycle = StreamMetadata(minimum=1, maximum=9, period_s=6, transition=Transition.JUMP)
    assert expected([1, 3, 9], cycle) == [9, 7, 1, 1]
    assert expected([9, 7, 1], cycle) == [1, 3, 9, 9]


def test_noise_at_the_last_rate_does_not_shift_a_trend() -> None:
    """A triangle wave from 0 to 10 in twenty periods; the last rate is 1.5 too high."""
    cycle = StreamMetadata(minimum=0, maximum=10, period_s=20, transition=Transition.TREND)
    wave = [float(min(place % 20, 20 - place % 20)) for place in range(44)]
    history = [*wave[:39], wave[39] + 1.5]
    assert expected(history, cycle) == pytest.approx(wave[40:44], abs=0.3)


def test_a_flat_history_does_not_follow_a_declared_trend() -> None:
    cycle = StreamMetadata(minimum=0, maximum=10, period_s=20, transition=Transition.TREND)
    assert expected([5.0] * 40, cycle) == expected([5.0] * 3, cycle)


def test_the_cycle_has_the_mean_rates_of_its_parts() -> None:
    """Sixteen parts of two periods; the stream has been low for four of its sixteen periods."""
    cycle = StreamMetadata(minimum=1, maximum=9, period_s=32, transition=Transition.JUMP)
    other = StreamMetadata(average=4.0)
    history = np.array([[9.0] * 4 + [1.0] * 4, [5.0] * 8])
    rates = expected_cycle(history, np.full((2, 3), 5.0), MetadataColumns.of([cycle, other]), 1.0)
    assert rates is not None
    assert rates[0].tolist() == [1.0] * 6 + [9.0] * 8 + [1.0] * 2
    assert rates[1].tolist() == [4.0] * CYCLE_PARTS


def test_there_is_no_cycle_without_declared_periods() -> None:
    columns = MetadataColumns.of([StreamMetadata(maximum=9.0)])
    assert expected_cycle(np.ones((1, 8)), np.ones((1, 3)), columns, 1.0) is None
