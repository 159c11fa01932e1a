"""Experiments of partitioning at small sizes: every series, every stream, the papers' orders."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from algorithms.errors import BadParameters, BadProblem
from algorithms.lab.datasets import DATA_FOLDER
from algorithms.lab.experiments import experiment, summarise
from algorithms.lab.partitioning.experiments.courses import Changing
from algorithms.lab.partitioning.experiments.setup import CHOICES, STREAMS, Served
from algorithms.lab.partitioning.experiments.windows_and_keys import relocations

SERVED = ("fig6", "fig8", "fig9", "fig10", "fig11", "fig12", "fig13", "slots")
SMALL: dict[str, Any] = {"messages": 20_000, "distinct": 2_000}


def rows_of(name: str, values: Any = None, series: Any = None, **more: Any) -> dict[Any, Any]:
    """Return the measures by x and series."""
    one = experiment("partitioning", name)
    table = one.run(one.parameters.from_mapping(more), values, series)
    return {(row[one.x.name], row["series"]): row for row in table.records()}


@pytest.mark.parametrize("name", SERVED)
def test_every_series_runs(name: str) -> None:
    """Each row has all measures as numbers."""
    one = experiment("partitioning", name)
    value = one.values[-1] if name != "fig12" else 20
    table = one.run(one.parameters.from_mapping(SMALL), [value], one.choices)
    assert len(table.rows) == len(one.choices)
    assert table.columns == (one.x.name, "series", "seed", *one.measures)
    assert all(isinstance(cell, float | int) for row in table.rows for cell in row[3:])


@pytest.mark.parametrize("stream", STREAMS)
def test_every_stream_can_be_chosen(stream: str) -> None:
    found = rows_of("fig8", [5], ["key", "shuffle"], stream=stream, **SMALL)
    assert found[5, "key"]["imbalance"] > found[5, "shuffle"]["imbalance"]
    assert found[5, "key"]["memory"] < found[5, "shuffle"]["memory"]
    assert found[5, "key"]["memory_ratio"] == 1


def test_figure_4_has_the_orders_of_the_paper() -> None:
    """Key and partial key grouping lose their balance with skew, the others do not."""
    found = rows_of("fig4", [1.6], messages=100_000)
    imbalance = {name: row["imbalance"] for (_, name), row in found.items()}
    ratio = {name: row["memory_ratio"] for (_, name), row in found.items()}
    assert imbalance["key"] > imbalance["partial_key"] > 0.1
    assert imbalance["random_choices"] <= 0.01 / 100 + 1 / 100_000
    assert imbalance["shuffle"] <= imbalance["two_choices"] < 1e-4
    assert 1 == ratio["key"] < ratio["random_choices"] < ratio["two_choices"] < ratio["shuffle"] * 2


def test_figure_6_has_less_memory_and_balance_at_larger_epsilon() -> None:
    found = rows_of("fig6", [0.001, 10.0], ["consistent_hysteresis"], **SMALL)
    low, high = (found[eps, "consistent_hysteresis"] for eps in (0.001, 10.0))
    assert low["total_imbalance"] < high["total_imbalance"]


def test_figure_7_is_of_bins() -> None:
    found = rows_of("fig7", [5, 50], ["random_choices"], messages=50_000)
    for workers in (5, 50):
        bound = 0.01 / (10 * workers) + 1 / 50_000
        assert found[workers, "random_choices"]["imbalance"] <= bound


def test_figure_10_has_queues_grow_only_without_signals() -> None:
    found = rows_of("fig10", [50.0, 100.0], messages=300_000, distinct=10_000)
    for name in ("key", "shuffle"):
        assert found[100, name]["queue"] > 1.8 * found[50, name]["queue"] > 1_000
    for name in ("consistent_grouping", "consistent_hysteresis"):
        assert found[100, name]["queue"] < 100
        assert found[100, name]["total_imbalance"] < 0.1
    # The moves of the one never end, those of the other do.
    assert found[100, "consistent_grouping"]["moves"] > found[50, "consistent_grouping"]["moves"]


def test_a_course_is_simulated_once() -> None:
    """Points of one run are the same points of one course."""
    all_points = rows_of("fig9", [10.0, 100.0], ["consistent_grouping"], **SMALL)
    single = rows_of("fig9", [100.0], ["consistent_grouping"], **SMALL)
    assert single[100, "consistent_grouping"] == all_points[100, "consistent_grouping"]
    assert all_points[10, "consistent_grouping"]["memory"] < 20_000


def test_figure_13_changes_the_capacities_twice() -> None:
    """The sum of all capacities stays the same."""
    cluster = Changing(messages=22_000).cluster()
    assert cluster.starts.tolist() == [0, 6_000, 12_000]
    assert cluster.capacity.sum(axis=1) == pytest.approx([1.25] * 3)
    fastest = (cluster.capacity > cluster.capacity.min(axis=1)[:, None]).sum(axis=1)
    assert fastest.tolist() == [3, 5, 2]


def test_slots_delay_convergence() -> None:
    found = rows_of("slots", [500, 20_000], ["consistent_grouping"], messages=200_000)
    assert (
        found[500, "consistent_grouping"]["moves"] > found[20_000, "consistent_grouping"]["moves"]
    )
    assert found[20_000, "consistent_grouping"]["imbalance"] > 0.2


def test_rate_aware_panes_are_balanced() -> None:
    """Figure 12 of paper 001: below 7 % on average after the warm-up, plain panes at 50 %."""
    found = rows_of("panes", [60.0, 80.0, 100.0], duration_s=100)
    means = {
        name: np.mean([row["ratio"] for (_, series), row in found.items() if series == name])
        for name in ("panes", "rate_aware")
    }
    assert means["rate_aware"] < 7
    assert means["panes"] > 45
    assert found[60, "panes"]["parts"] == 1
    assert found[60, "rate_aware"]["parts"] > 1


def test_relocated_keys_by_hand() -> None:
    """Key 3 gets worker 2; key 1 loses one of two; the pane mixes both halves."""
    keys = np.array([1, 1, 2, 3, 1, 1, 2, 3], np.uint64)
    before = np.array([0, 1, 0, 1, 0, 1, 0, 1])
    after = np.array([0, 0, 0, 2, 0, 0, 0, 2])
    found = relocations(keys, before, after)
    assert found["relocated"] == pytest.approx(100 / 3)
    assert found["steady"] == pytest.approx(4 / 3)
    assert found["results"] == pytest.approx(5 / 3)


def test_basic_hashing_relocates_nearly_all_keys() -> None:
    """Figure 13 of paper 001; consistent hashing relocates about one of n + 1."""
    found = rows_of("relocations", [8], messages=20_000, distinct=2_000)
    assert found[8, "key"]["relocated"] > 80
    assert found[8, "frequency_aware"]["relocated"] < 25
    assert found[8, "frequency_aware"]["results"] < found[8, "key"]["results"]


def test_dividing_frequent_keys_balances() -> None:
    """Figure 15 of paper 001: K = 5 is below 50 % at every exponent."""
    series = [f"zipf_{z}" for z in ("0", "0.5", "1", "1.5", "2")]
    found = rows_of("frequent_keys", [0, 5], series, messages=100_000)
    assert all(found[5, name]["ratio"] < 50 for name in series)
    assert found[0, "zipf_1.5"]["ratio"] > 100


def test_the_summary_is_over_streams() -> None:
    """A seed draws another stream."""
    one = experiment("partitioning", "fig8")
    table = one.run(Served.from_mapping(SMALL | {"seeds": 2}), [5], ["key"])
    (row,) = summarise(table, "workers", "imbalance").rows
    assert row[-1] == 2
    assert table.rows[0][3:] != table.rows[1][3:]


def test_recorded_streams_need_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    with pytest.raises(BadProblem):
        rows_of("fig8", [5], ["key"], stream="words", **SMALL)


def test_more_fast_workers_than_workers_are_refused() -> None:
    with pytest.raises(BadParameters) as caught:
        Served(workers=2, fast=3)
    assert list(caught.value.fields) == ["fast"]


def test_series_are_groupings() -> None:
    parameters = Served()
    for name in CHOICES:
        assert parameters.grouping(name).name in (name, "consistent_grouping")
    paper = parameters.grouping("consistent_grouping").to_mapping()
    assert [paper[name] for name in ("hysteresis", "moves", "eps")] == [0, 1, 0.01]
    assert parameters.grouping("consistent_hysteresis").to_mapping()["hysteresis"] > 0
