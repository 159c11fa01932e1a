"""Edge cases of the engine's parts: one of two values is large, one of two streams is absent."""

from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controlplane.wire.routing.drop_rules import DropRule
from tests.workers.pipeline.engine.warehouse import readings
from workers.pipeline.engine.aggregation.selection import BY_LADDER, BY_RULE, KEPT, drop_causes
from workers.pipeline.engine.assignment.subscriptions import Intake
from workers.pipeline.engine.failures.fault import FaultReason, read_faults, write_faults
from workers.pipeline.engine.kernels.decimals import add, divide, multiply, subtract
from workers.pipeline.engine.partial_aggregation import BatchChanges, task_bytes
from workers.pipeline.engine.store import MemoryStore

DECIMAL = pa.decimal128(38, 9)
# Its units do not fit into 64 bits.
LARGE, SMALL = Decimal("12345678901234567890.000000001"), Decimal("2.5")
EXACT = Context(prec=60)


def decimals(*values: Decimal | None) -> Any:
    return pa.array(values, DECIMAL)


@pytest.mark.parametrize(("left", "right"), [(LARGE, SMALL), (SMALL, LARGE), (LARGE, LARGE)])
def test_decimals_beyond_64_bits_are_computed_on_either_side(left: Decimal, right: Decimal) -> None:
    a, b = decimals(left, None), decimals(right, SMALL)
    assert add(a, b).to_pylist() == [EXACT.add(left, right), None]
    assert subtract(a, b).to_pylist() == [EXACT.subtract(left, right), None]
    quotient = EXACT.quantize(EXACT.divide(left, right), Decimal("1e-9"))
    assert divide(a, b).to_pylist() == [quotient, None]


def test_a_quotient_beyond_64_bits_is_exact() -> None:
    up, down = decimals(Decimal(9 * 10**8)), decimals(Decimal("0.000000001"))
    assert divide(up, down).to_pylist() == [Decimal(9 * 10**17)]


def test_a_product_is_rounded_half_to_even() -> None:
    units = decimals(Decimal("0.000000001"), Decimal("0.000000003"), LARGE)
    half = decimals(Decimal("0.5"), Decimal("0.5"), Decimal(2))
    expected = [Decimal(0), Decimal("0.000000002"), EXACT.add(LARGE, LARGE)]
    assert multiply(units, half).to_pylist() == expected
    assert multiply(half, units).to_pylist() == expected
    with pytest.raises(pa.ArrowInvalid):
        multiply(decimals(Decimal(10**28)), decimals(Decimal(10**28)))


def test_rules_apply_though_the_stream_of_the_first_one_is_absent() -> None:
    """Also a rule after those of the ladder; a rule of the edge replaces the ladder."""
    records = readings(40, streams=(2, 3))
    all_of = DropRule.of(1.0)
    intake = Intake(
        drop_rules=((1, all_of), (2, all_of)), ladder_rules=((1, all_of), (2, all_of), (3, all_of))
    )
    causes = drop_causes(records, intake)
    assert set(causes[records.stream == 2].tolist()) == {BY_RULE}
    assert set(causes[records.stream == 3].tolist()) == {BY_LADDER}
    alone = drop_causes(records, Intake(drop_rules=((1, all_of), (3, all_of))))
    assert set(alone[records.stream == 2].tolist()) == {KEPT}
    assert set(alone[records.stream == 3].tolist()) == {BY_RULE}
    assert drop_causes(records, Intake()) is None


def test_bytes_are_shared_among_the_tasks_by_their_rows() -> None:
    rows = pa.table({"query": [5, 5, 5, 7], "task": [0, 3, 3, 2]})
    assert task_bytes(rows, 400).tolist() == [[5, 0, 0, 100], [5, 3, 0, 200], [7, 2, 0, 100]]
    assert task_bytes(rows.slice(0, 0), 400).tolist() == []


def test_changes_of_parts_are_added() -> None:
    """The bytes of the state are those after the last part."""
    window: Any = "a window"
    first, second = (
        BatchChanges(
            windows=[window], blocks=[window], ended={number}, late=number, state_bytes=number,
            dropped={(1, 2): number, (3, number): 1}, ladder_dropped={(1, 2): number},
            tasks=[np.full((1, 4), number)], state_us=number,
            faults={number: FaultReason(str(number))},
        )
        for number in (4, 6)
    )  # fmt: skip
    first.take(second)
    assert (first.windows, first.blocks, first.ended) == ([window] * 2, [window] * 2, {4, 6})
    assert (first.late, first.state_bytes, first.state_us) == (10, 6, 10)
    assert first.dropped == {(1, 2): 10, (3, 4): 1, (3, 6): 1}
    assert first.ladder_dropped == {(1, 2): 10}
    assert [rows[0, 0] for rows in first.tasks] == [4, 6]
    assert first.faults == {4: FaultReason("4"), 6: FaultReason("6")}


def test_a_node_keeps_the_samples_of_32_faults() -> None:
    store = MemoryStore()
    faults = {query: (1, FaultReason("no", "merge", "[1]")) for query in range(33)}
    write_faults(store, faults)
    kept = read_faults(store, dict.fromkeys(faults, 1))
    assert [fault.sample for _, fault in kept.values()] == ["[1]"] * 32 + [""]
    assert kept[32] == (1, FaultReason("no", "merge"))
