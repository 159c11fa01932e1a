"""The queueing simulation: conservation, and what the paper says of its strategies."""

import numpy as np
import pytest

from algorithms.admission.metadata import StreamMetadata
from algorithms.admission.strategies import Ari, DrfM, Par, Profile
from algorithms.lab.admission.simulation import Setting, simulate
from algorithms.lab.admission.workloads import WORKLOADS, Workload, WorkloadSettings, draw

SETTINGS = WorkloadSettings(steps=1_200, level=4.0, streams=40)


def test_one_seed_has_one_course() -> None:
    first, second = (simulate(draw("psfcw", SETTINGS, 1), DrfM(), seed=1).means() for _ in range(2))
    assert first == second


def test_a_constant_load_needs_what_it_needs() -> None:
    """Three streams of 0.6 need three nodes, are never redirected, and no queue grows."""
    metadata = (StreamMetadata(average=600.0),) * 3
    workload = Workload(np.full((3, 600), 600.0), metadata, 1.0, drawn=False)
    means = simulate(workload, Ari()).means()
    assert (means["nodes"], means["optimum"]) == (3, 3)
    assert (means["redirections"], means["overloaded"], means["latency_s"]) == (0, 0, 0)


@pytest.mark.parametrize("name", WORKLOADS)
def test_few_streams_are_redirected_compared_with_packing_all_anew(name: str) -> None:
    workload = draw(name, SETTINGS, 2)
    most = simulate(workload, Par(), seed=2).means()["redirections"]
    for strategy in (DrfM(), Profile()):
        assert simulate(workload, strategy, seed=2).means()["redirections"] <= 0.05 * most


@pytest.mark.parametrize("name", ["psfcw", "bursty"])
def test_meta_data_redirect_less_than_rates(name: str) -> None:
    settings = WorkloadSettings()
    known, unknown = (
        simulate(draw(name, settings, 1), strategy, Setting(), 1).means()
        for strategy in (DrfM(), Ari())
    )
    assert known["redirections"] < unknown["redirections"]
    assert known["buffered"] < unknown["buffered"]


@pytest.mark.parametrize("name", ["psfcw", "ptfcw"])
def test_opposite_cycles_need_few_nodes_without_overload(name: str) -> None:
    workload = draw(name, WorkloadSettings(), 1)
    strategies = (kind(foresee=True, consolidate=True, fill=0.98) for kind in (Profile, DrfM))
    profile, drf_m = (simulate(workload, strategy, seed=1).means() for strategy in strategies)
    assert profile["nodes"] <= 9.1
    assert profile["nodes"] <= drf_m["nodes"]
    assert max(profile["overloaded"], drf_m["overloaded"]) <= 0.02
    assert drf_m["above_optimum"] <= 0.2


def test_consolidation_closes_nodes() -> None:
    workload = draw("tfvar", SETTINGS, 1)
    grown = simulate(workload, DrfM(foresee=True)).means()["nodes"]
    assert simulate(workload, DrfM(foresee=True, consolidate=True)).means()["nodes"] < grown
