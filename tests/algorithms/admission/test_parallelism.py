"""Equations 1a and 1b."""

import pytest

from algorithms.admission.scaling import ParallelCosts, aggregator_nodes, query_nodes
from algorithms.errors import BadProblem

COST = ParallelCosts(operator_s=0.0008, merge_s=0.00005, node_rate=1_125, headroom=0.1)


def test_the_example_of_twelve_thousand_records_a_second() -> None:
    assert query_nodes(12_000, COST) == 11
    assert aggregator_nodes(11, COST) == 1


def test_a_whole_number_of_nodes_is_not_exceeded_by_rounding() -> None:
    cost = ParallelCosts(operator_s=0.1, merge_s=0.1, node_rate=10, headroom=0.0)
    assert query_nodes(30, cost) == 3
    assert aggregator_nodes(3, cost) == 3


def test_no_load_needs_one_node() -> None:
    assert query_nodes(0, COST) == 1


@pytest.mark.parametrize("headroom", [-0.1, 1.0])
def test_the_headroom_is_a_share(headroom: float) -> None:
    with pytest.raises(BadProblem) as caught:
        ParallelCosts(0.1, 0.1, 1, headroom)
    assert caught.value.where == "headroom"


def test_a_negative_rate_is_refused() -> None:
    with pytest.raises(BadProblem) as caught:
        query_nodes(-1, COST)
    assert caught.value.where == "rate"
