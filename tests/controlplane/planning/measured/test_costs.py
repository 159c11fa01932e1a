"""Costs of queries from samples of telemetry."""

from typing import Any

import pytest

from controlplane.planners.admission.inputs import AdmissionInput, AggregatedQuery, MeasuredCosts
from controlplane.planning.measured.costs import (
    merge_seconds,
    operator_seconds,
    partials_per_record,
)
from tests.support.series import batches_of


def sample(**changed: Any) -> dict[str, Any]:
    return {
        "loads": [1_000.0, 500.0, 0.0], "busy": [0.8, 0.5, 0.9],
        "merged": [0.0, 400.0, 0.0], "merge_busy": [0.0, 0.1, 0.0],
    } | changed  # fmt: skip


def test_the_cost_of_a_record_leaves_out_merging() -> None:
    """Nodes 0 and 1 need 0.8 ms each; node 2 has no record."""
    assert operator_seconds(batches_of([sample()]), {}) == pytest.approx(0.0008)


def test_nodes_that_are_not_busy_enough_do_not_count() -> None:
    assert operator_seconds(batches_of([sample(busy=[0.2, 0.5, 0.0])]), {}) == pytest.approx(0.0008)
    assert operator_seconds(batches_of([sample(busy=[0.2, 0.2, 0.0])]), {}) is None
    assert operator_seconds(batches_of([]), {}) is None


def test_an_emulated_capacity_is_the_cost_of_its_node() -> None:
    busy = [0.01, 0.01, 0.01]
    assert operator_seconds(batches_of([sample(busy=busy)]), {0: 500.0, 1: 500.0, 2: 9.0}) == 0.002


def test_the_cost_of_a_partial_result() -> None:
    assert merge_seconds(batches_of([sample()] * 20)) == 0.00025
    assert merge_seconds(batches_of([sample()] * 19)) is None, "too few batches"
    assert merge_seconds(batches_of([sample(merge_busy=[0.0, 0.04, 0.0])] * 20)) is None
    assert merge_seconds(batches_of([sample(merged=[0.0, 0.0, 0.0])])) is None


def test_partial_results_are_those_of_all_aggregator_nodes() -> None:
    several = [sample(merged=[100.0, 400.0]), sample(merged=[300.0, 0.0])]
    assert partials_per_record(batches_of(several), 800.0) == 0.5
    assert partials_per_record(batches_of(several), 0.0) is None
    assert partials_per_record(batches_of([sample(merged=[0.0])]), 800.0) is None


def test_the_input_is_stored_and_read() -> None:
    given = AdmissionInput(
        10, 0.0, {}, [], 2.0, MeasuredCosts(0.1, None, 0.5), [AggregatedQuery(7, [1, 2])]
    )
    assert AdmissionInput.from_json(given.to_json()) == given
