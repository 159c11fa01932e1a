"""Figures 10 and 11 at a small size: every workload, every series, the paper's orders."""

from pathlib import Path
from typing import Any

import pytest

from algorithms.errors import BadParameters, BadProblem
from algorithms.lab.admission.experiments.figures import MEASURES, ByLevel, ByWorkload
from algorithms.lab.admission.experiments.setup import CHOICES, WORKLOAD_NAMES
from algorithms.lab.admission.real_workloads import RECORDED
from algorithms.lab.datasets import DATA_FOLDER
from algorithms.lab.experiments import experiment, summarise

SMALL = {"streams": 40, "level": 3.0, "duration_s": 300}


def means(name: str, y: str, values: Any, series: Any, **more: Any) -> dict[Any, float]:
    one = experiment("admission", name)
    table = one.run(one.parameters.from_mapping(SMALL | more), values, series)
    rows = summarise(table, one.x.name, y).rows
    return {(row[0], row[1]): float(row[2] or 0) for row in rows}


def test_numbers_name_the_workloads() -> None:
    assert [ByWorkload(workload_number=number).name for number in (1, 6, 7)] == [
        "constw",
        "bursty",
        "cars",
    ]
    assert ByLevel(workload="tiles").name == "tiles"


def test_every_workload_has_a_row_per_series_and_seed() -> None:
    one = experiment("admission", "fig10")
    values = range(1, len(WORKLOAD_NAMES) + 1)
    table = one.run(ByWorkload.from_mapping(SMALL | {"seeds": 2}), values, ("ard", "drf"))
    assert len(table.rows) == len(WORKLOAD_NAMES) * 2 * 2
    assert table.columns == ("workload_number", "series", "seed", *MEASURES)
    for row in table.records():
        numbers = [row[measure] for measure in MEASURES]
        assert all(isinstance(number, float) for number in numbers)
        assert isinstance(row["optimum"], float)
        # Rounded up, and measured in a part of the time: at least half of the load level.
        assert 1.5 <= row["optimum"] <= 6


def test_a_seed_has_one_table() -> None:
    one = experiment("admission", "fig11")
    first, second = (
        one.run(ByWorkload.from_mapping(SMALL | {"seeds": 2}), [4.0], ("drf_m",)) for _ in range(2)
    )
    assert first == second
    assert first.rows[0] != first.rows[1]


def test_every_series_runs() -> None:
    found = means("fig10", "nodes", [6.0], CHOICES)
    assert len(found) == len(CHOICES)
    assert min(found.values()) >= 1


def test_figure_10_has_par_redirect_most() -> None:
    """Section 6.2.1: it assigns all streams again in every period."""
    series = ("par", "ari", "ard", "drf", "drf_m")
    for measure in ("redirections", "buffered", "delay_s"):
        found = means("fig10", measure, [2.0, 6.0], series)
        for number in (2, 6):
            most = found.pop((number, "par"))
            assert most > 2 * max(found[number, name] for name in series[1:])


def test_redirected_streams_wait_as_long_as_is_set() -> None:
    """The delay is half of the wait for each buffered record."""
    one = experiment("admission", "fig10")
    parameters = ByWorkload.from_mapping(SMALL | {"redirect_s": 0.8})
    (row,) = one.run(parameters, [6.0], ("par",)).records()
    assert isinstance(row["buffered"], float)
    assert row["delay_s"] == pytest.approx(0.4 * row["buffered"])


def test_figure_11_has_consolidation_close_split_nodes() -> None:
    """The load of tfvar falls to half of its average."""
    found = means("fig11", "above_optimum", [5.0], ("drf_m", "drf_m_consolidated"), duration_s=600)
    assert found[5, "drf_m_consolidated"] < found[5, "drf_m"] - 20


def test_levels_need_as_many_split_nodes() -> None:
    found = means("levels", "optimum", [2.0, 4.0], ("ard",), workload="constw")
    assert found == {(2.0, "ard"): pytest.approx(2, abs=1), (4.0, "ard"): pytest.approx(4, abs=1)}
    for workload in RECORDED:
        assert means("levels", "nodes", [2.0], ("ard",), workload=workload)[2.0, "ard"] >= 2


def test_meta_data_can_be_unknown() -> None:
    """The packing for maxima needs more split nodes than the packing for forecasts."""
    nodes = {
        known: means("fig11", "nodes", [6.0], ("drf_m",), metadata=known)[6, "drf_m"]
        for known in (True, False)
    }
    assert nodes[False] < nodes[True]


def test_streams_above_the_capacity_are_refused() -> None:
    one = experiment("admission", "levels")
    with pytest.raises(BadParameters, match="above the capacity of a split node"):
        one.run(ByLevel(streams=4, duration_s=300), [8.0], ("ard",))
    with pytest.raises(BadParameters, match="must be even, not 5"):
        ByLevel(streams=5)


def test_without_the_data_the_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    one = experiment("admission", "levels")
    with pytest.raises(BadProblem, match=str(tmp_path)):
        one.run(ByLevel(workload="series"), [2.0], ("ard",))
