"""Recorded workloads: what the files have, scaled to a load level."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from algorithms.errors import BadProblem
from algorithms.lab.admission.real_workloads import (
    CARS_FILE,
    LARGEST_SHARE,
    MAX_STREAMS,
    RECORDED,
    SERIES_FILE,
    TILES_FILE,
    draw_recorded,
    read_series,
)
from algorithms.lab.admission.workloads import WorkloadSettings
from algorithms.lab.datasets import DATA_FOLDER, data_folder

SETTINGS = WorkloadSettings(streams=80, level=6.0, capacity=500.0, steps=600)


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("level", [0.5, 6.0, 32.0])
def test_the_mean_total_is_the_load_level(name: str, level: float) -> None:
    """Each stream, also a partition of one, needs at most half of a split node."""
    settings = WorkloadSettings(streams=80, level=level, capacity=500.0, steps=600)
    workload = draw_recorded(name, settings, 1)
    assert workload.rates.mean(axis=1).sum() == pytest.approx(level * 500.0)
    assert workload.rates.shape[1] == 600
    assert len(workload.metadata) == len(workload.rates) >= 80
    assert workload.rates.min() >= 0
    assert workload.rates.max() <= LARGEST_SHARE * 500.0 * (1 + 1e-9)


@pytest.mark.parametrize("name", RECORDED)
def test_a_seed_has_one_workload(name: str) -> None:
    first, second, other = (draw_recorded(name, SETTINGS, seed) for seed in (0, 0, 1))
    assert np.array_equal(first.rates, second.rates)
    assert first.metadata == second.metadata
    assert not np.array_equal(first.rates.sum(axis=0), other.rates.sum(axis=0))


@pytest.mark.parametrize("name", RECORDED)
def test_the_known_characteristics_hold(name: str) -> None:
    workload = draw_recorded(name, SETTINGS, 2)
    for rates, metadata in zip(workload.rates, workload.metadata, strict=True):
        assert metadata.minimum is not None
        assert metadata.maximum is not None
        assert metadata.minimum * (1 - 1e-9) <= rates.min()
        assert rates.max() <= metadata.maximum * (1 + 1e-9)


def test_cars_are_the_busiest_and_keep_their_proportions() -> None:
    """A week has 2,016 buckets of 5 minutes: 20,160 s at 30 times the speed.

    The 80 busiest cars have 7.70 to 3.98 reports per bucket.
    """
    settings = WorkloadSettings(streams=80, level=2.0, steps=20_160)
    rates = draw_recorded("cars", settings, 0).rates.mean(axis=1)
    assert len(rates) == 80
    assert rates[0] / rates[-1] == pytest.approx(7.70 / 3.98, rel=0.01)
    assert (np.diff(rates) <= 1e-9).all()


def test_a_bucket_lasts_one_period_at_the_usual_speed() -> None:
    """Rates change every 10 steps of a second only; at 60 times the speed every 5 steps."""
    for speedup, length in ((30.0, 10), (60.0, 5)):
        rates = draw_recorded("cars", SETTINGS, 0, speedup).rates
        changes = np.flatnonzero((np.diff(rates, axis=1) != 0).any(axis=0)) + 1
        assert len(changes)
        assert (changes % length == 0).all()


def test_the_largest_tile_is_divided() -> None:
    """It has a tenth of all reports: at level 8 it needs more than half of a split node."""
    workload = draw_recorded("tiles", WorkloadSettings(level=8.0, steps=600), 0)
    assert len(workload.rates) > 80
    assert np.array_equal(workload.rates[0], workload.rates[1])
    assert workload.metadata[0] == workload.metadata[1]


def test_each_series_is_read_and_limited() -> None:
    series = read_series(data_folder() / SERIES_FILE)
    assert len(series) == 15
    assert {record.bucket_s for record in series} == {300.0, 1_800.0}
    assert sum(len(record.values) for record in series) == 2_418 + 2_838 + 2_417 + 746 + 5_904 + (
        10 * 8_956
    )
    assert max(record.values.max() / record.values.mean() for record in series) < 50


def test_a_record_that_is_too_short_is_refused() -> None:
    """A week lasts 20,160 s at 30 times its speed."""
    with pytest.raises(BadProblem, match="lasts 20160 s at 30 times its speed, not 20170 s"):
        draw_recorded("tiles", WorkloadSettings(steps=20_170), 0)


def test_too_many_streams_are_refused() -> None:
    with pytest.raises(BadProblem, match=f"must be from 1 to {MAX_STREAMS}"):
        draw_recorded("cars", WorkloadSettings(streams=MAX_STREAMS + 1), 0)


@pytest.mark.parametrize(
    ("name", "file"), [("cars", CARS_FILE), ("tiles", TILES_FILE), ("series", SERIES_FILE)]
)
def test_missing_data_is_named(
    name: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    with pytest.raises(BadProblem, match=file):
        draw_recorded(name, SETTINGS, 0)


@pytest.mark.parametrize(
    "text", ["series,bucket_s\na,300\n", "series,bucket_s,value\na,300,many\n", ""]
)
def test_a_file_of_another_form_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / SERIES_FILE
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(BadProblem, match=r"columns series, bucket_s and value|no series"):
        read_series(path)
