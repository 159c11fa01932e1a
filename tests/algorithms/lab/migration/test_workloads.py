"""Tasks and demand: what the text says of them, and the recorded numbers."""

import numpy as np
import pytest

from algorithms.errors import BadProblem
from algorithms.lab.datasets import DATA_FOLDER
from algorithms.lab.migration.workloads import frequent_patterns, node_numbers, word_count


def test_words_are_uneven_work_and_nearly_even_state() -> None:
    work, state = word_count(64, 0)
    assert work.sum() == pytest.approx(1)
    assert work.max() > 2 / 64
    assert state.max() < 1.2 * state.mean()


def test_patterns_grow_with_the_window() -> None:
    small, large = (frequent_patterns(64, 0, window)[1].sum() for window in (30.0, 120.0))
    assert large == pytest.approx(4 * small, rel=0.05)


def test_drawn_demand_changes_and_stays_within_its_bounds() -> None:
    numbers = node_numbers("daily", 1, 8, 16)
    assert (np.diff(numbers) != 0).all()
    assert (numbers.min(), numbers.max()) == (8, 16)
    assert len(numbers) > 1_000
    assert node_numbers("daily", 2).tolist() != numbers.tolist()


def test_recorded_demand_has_its_known_changes() -> None:
    assert len(node_numbers("nyc_taxi")) == 1_683
    assert len(node_numbers("tweet_mentions")) == 292


def test_missing_data_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    with pytest.raises(BadProblem, match="node_demand_hourly"):
        node_numbers("cab_reports")
    with pytest.raises(BadProblem, match="node_demand_hourly"):
        node_numbers("worldcup98")
