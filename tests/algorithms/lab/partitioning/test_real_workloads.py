"""Recorded streams: the numbers that their description states, and missing files."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from algorithms.errors import BadProblem
from algorithms.lab.datasets import DATA_FOLDER
from algorithms.lab.partitioning.real_workloads import RECORDED, REQUESTS_FILE, read_stream

# Events, keys, and the share of the most frequent key in percent.
DESCRIBED = {
    "tiles_1km": (3_365_830, 1_705, 9.89),
    "tiles_100m": (3_365_830, 28_926, 2.08),
    "words": (4_570_015, 53_454, 5.51),
    "requests": (31_773, 14_087, 1.74),
}


@pytest.mark.parametrize("name", RECORDED)
def test_streams_are_as_described(name: str) -> None:
    stream = read_stream(name)
    messages, keys, share = DESCRIBED[name]
    counts = np.bincount(stream.numbers)
    assert (len(stream), len(stream.hashes), len(counts)) == (messages, keys, keys)
    assert 100 * counts.max() / messages == pytest.approx(share, abs=0.006)
    assert len(np.unique(stream.hashes)) == keys
    if name == "words":
        assert stream.times is None
    else:
        assert stream.times is not None
        assert (np.diff(stream.times) >= 0).all()


def test_a_seed_changes_only_the_hashes() -> None:
    first, second = read_stream("requests"), read_stream("requests", 1)
    assert np.array_equal(first.numbers, second.numbers)
    assert not np.isin(first.hashes, second.hashes).any()


@pytest.mark.parametrize("name", RECORDED)
def test_missing_files_are_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    with pytest.raises(BadProblem) as caught:
        read_stream(name)
    assert caught.value.where.startswith(str(tmp_path))


@pytest.mark.parametrize("text", ["ts_ms,class\n1,media\n", "ts_ms,key_id\n1,x\n"])
def test_other_columns_are_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    with gzip.open(tmp_path / REQUESTS_FILE, "wt") as file:
        file.write(text)
    with pytest.raises(BadProblem, match="needs the columns key_id and ts_ms"):
        read_stream("requests")


def test_an_empty_stream_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    with gzip.open(tmp_path / REQUESTS_FILE, "wt") as file:
        file.write("ts_ms,key_id\n")
    with pytest.raises(BadProblem, match="without messages"):
        read_stream("requests")
