"""Batches are bounded by what batches before them became."""

import pytest

from workers.pipeline.split_nodes.batch_size import (
    INITIAL_RECORDS,
    MIN_RECORDS,
    BatchLoad,
    batch_budget,
    record_limit,
)

MANY = 200_000
BUDGET = 100_000_000


def test_batches_grow_from_a_first_one_to_the_bound() -> None:
    """The cost of a record is not known before; each batch shows it for the next."""
    loads: list[BatchLoad] = []
    sizes = []
    for _ in range(5):
        sizes.append(record_limit(loads, BUDGET, MANY))
        loads.append(BatchLoad(sizes[-1], sizes[-1] * 30, sizes[-1] * 2))
    assert sizes == [INITIAL_RECORDS, 2 * INITIAL_RECORDS, MANY, MANY, MANY]


def test_a_batch_stays_within_the_budget_of_delivered_bytes() -> None:
    """Wide records, or records that go to many nodes."""
    assert record_limit([BatchLoad(100_000, 200_000_000, 0)], BUDGET, MANY) == 50_000


def test_a_batch_stays_within_the_budget_of_emitted_bytes() -> None:
    """Thousands of queries whose windows change with each record."""
    assert record_limit([BatchLoad(1_000_000, 0, 4 * 10**9)], BUDGET, 10**7) == 25_000


def test_queries_that_were_added_are_expected_to_emit_as_those_before() -> None:
    """One query over full batches, then a thousand in one routing version."""
    loads = [BatchLoad(MANY, MANY * 30, MANY * 10)] * 4
    assert record_limit(loads, BUDGET, MANY) == MANY
    assert record_limit(loads, BUDGET, MANY, more_queries=1000) == 10_000
    assert record_limit(loads, BUDGET, MANY, more_queries=0.5) == MANY


def test_quiet_batches_do_not_slow_the_next_one() -> None:
    """A burst after seven quiet batches is read as before; a batch without records says nothing."""
    loads = [
        BatchLoad(150_000, 3_000_000, 0),
        *[BatchLoad(40, 2_000, 100)] * 6,
        BatchLoad(0, 0, 5_000),
    ]
    assert record_limit(loads, BUDGET, MANY) == MANY


def test_a_batch_always_goes_on() -> None:
    """However much a record becomes, and however small the bound that an operator has set."""
    assert record_limit([BatchLoad(10, 10**9, 0)], BUDGET, MANY) == MIN_RECORDS
    assert record_limit([BatchLoad(10, 10**9, 0)], BUDGET, 200) == 200


def test_telemetry_from_before_the_bytes_were_counted_is_read() -> None:
    """The first batches after an update."""
    assert BatchLoad.of({"in": 7, "nodes": [{"bytes": 5}, {"bytes": 6}]}) == BatchLoad(7, 11, 0)
    assert BatchLoad.of({"in": 7, "nodes": [{"bytes": 5, "emitted": 3}]}) == BatchLoad(7, 5, 3)


@pytest.mark.parametrize(
    ("memory", "mib"), [("768m", 192), ("2g", 512), ("1024", 256), ("2GB", 512), ("odd", 256)]
)
def test_the_budget_follows_the_memory_of_the_jvm(memory: str, mib: int) -> None:
    assert batch_budget(memory) == mib << 20
