"""Figure 14 at a small size: the load, latency and split nodes over time."""

from typing import Any

import pytest

from algorithms.errors import BadParameters
from algorithms.lab.admission.experiments.growth import FIG14, Growing, growing
from algorithms.lab.admission.real_workloads import RECORDED
from algorithms.lab.admission.workloads import WorkloadSettings

SMALL = {"streams": 40, "lowest": 2.0, "highest": 8.0, "static_nodes": 10, "duration_s": 600}


def column(y: str, values: Any, series: str, **more: Any) -> list[Any]:
    table = FIG14.run(Growing.from_mapping(SMALL | more), values, (series,))
    return list(table.column(y))


def test_the_load_grows_from_the_lowest_to_the_highest_level_and_falls() -> None:
    settings = WorkloadSettings(40, 5.0, 1_000.0, 600, 1.0, 600.0, 4.0)
    total = growing(settings, 1).rates.sum(axis=0)
    assert total[0] == pytest.approx(2_000)
    assert total[300] == pytest.approx(8_000)
    assert total[-1] == pytest.approx(2_020)


def test_the_optimum_follows_the_load() -> None:
    """At the beginning, in the middle and in the end, in intervals of 20 s."""
    found = column("optimum", [0.0, 290.0, 580.0], "ard", interval_s=20.0)
    assert found == pytest.approx([3, 8, 3], abs=1)


def test_a_static_cluster_has_all_its_split_nodes() -> None:
    assert column("nodes", [0.0, 300.0, 500.0], "static") == [10, 10, 10]
    assert sum(column("redirections", [0.0, 300.0, 500.0], "static")) == 0
    assert max(column("latency_s", [0.0, 300.0], "static")) < 1


def test_a_static_cluster_that_is_too_small_has_long_latencies() -> None:
    assert column("latency_s", [300.0], "static", static_nodes=6)[0] > 5


def test_consolidation_closes_split_nodes_when_the_load_falls() -> None:
    grown, closing = (
        column("nodes", [300.0, 500.0], name) for name in ("drf_m", "drf_m_consolidated")
    )
    assert grown[0] <= grown[1]
    assert closing[1] < closing[0]


def test_an_interval_has_the_longest_of_its_latencies() -> None:
    parts = column("latency_s", [0.0, 100.0], "ard_consolidated")
    whole = column("latency_s", [0.0], "ard_consolidated", interval_s=200.0)
    assert max(parts) == whole[0]


def test_foreseen_overload_shortens_latencies() -> None:
    late, early = (
        max(column("latency_s", [100.0, 200.0], "ard_consolidated", foresee=foresee))
        for foresee in (False, True)
    )
    assert early < 5 < late


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_loads_can_be_chosen(name: str) -> None:
    assert column("nodes", [0.0], "ard", workload=name, duration_s=300)[0] >= 2


def test_values_out_of_range_are_refused() -> None:
    with pytest.raises(BadParameters, match="ends after 600 s, before 600 s"):
        column("nodes", [600.0], "ard")
    with pytest.raises(BadParameters, match="at most the highest level, 8, not 9"):
        Growing(lowest=9.0, highest=8.0)
