"""The contract for numbers: overflow, exact sums, stable variance, NaN, infinities and null."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from controlplane.wire.language.tree import Kind
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from tests.workers.pipeline.engine.running import Running, batch_of, fault, results

NAN, INF = math.nan, math.inf
DECIMAL = pa.decimal128(38, 9)
LEAST, MOST = -(2**63), 2**63 - 1


def one(aggregates: dict[str, str], kind: Kind, *batches: Any, **parts: Any) -> dict[str, Any]:
    """Return the aggregates over the column x of these batches, in one window without a key."""
    rows = results(QueryText(aggregates, **parts), {"x": kind}, [{"x": batch} for batch in batches])
    (row,) = rows
    return dict(row.values)


def test_a_sum_of_whole_numbers_is_exact_beyond_64_bits() -> None:
    values = [MOST, MOST, MOST, 5, LEAST]
    found = one({"s": "sum(x)", "m": "mean(x)"}, Kind.INT, values[:2], values[2:3], values[3:])
    assert found == {"s": sum(values), "m": sum(values) / 5}
    assert one({"s": "sum(x)"}, Kind.INT, [LEAST] * 1000)["s"] == LEAST * 1000


def test_a_sum_of_decimals_is_exact_at_any_size() -> None:
    values = [Decimal("99999999999999999999999999999.999999999")] * 11 + [Decimal("0.1")]
    column = pa.array(values, DECIMAL)
    found = one({"s": "sum(x)", "m": "mean(x)"}, Kind.DECIMAL, column[:3], column[3:])
    assert str(found["s"]) == "1100000000000000000000000000000.099999989"
    assert str(found["m"]) == "91666666666666666666666666666.674999999"


def test_an_infinite_sum_is_infinite() -> None:
    assert one({"s": "sum(x)", "m": "mean(x)"}, Kind.FLOAT, [INF, 1.0], [2.0]) == {
        "s": INF,
        "m": INF,
    }
    found = one({"s": "sum(x)", "v": "variance(x)"}, Kind.FLOAT, [INF, -INF])
    assert all(math.isnan(value) for value in found.values())


def test_floats_are_keys_with_one_nan_and_one_zero() -> None:
    values = [
        0.0,
        -0.0,
        NAN,
        -NAN,
        np.float64(np.uint64(0x7FF8000000000001).view(np.float64)),
        None,
    ]
    rows = results(
        QueryText({"n": "count(*)"}, key=["x"]), {"x": Kind.FLOAT},
        [{"x": values}, {"x": values}], tasks=5, nodes=2,
    )  # fmt: skip
    assert {row.key["x"]: row.values["n"] for row in rows} == {0.0: 4, NAN: 6, None: 2}
    assert sorted(str(row.key["x"]) for row in rows) == ["0.0", "None", "nan"]


@pytest.mark.parametrize(
    "text",
    ["x + 1", "x * 2", "-(0 - x - 2)", "x - -1", "abs(0 - x - 1)", "(0 - x - 1) // (x - x - 1)",
     "cast(x * 2.0 as int)", "ceil(x * 2.0)", "cast(cast(x as decimal) * 4 as int)"],
)  # fmt: skip
def test_an_overflow_is_a_fault_and_never_wraps(text: str) -> None:
    said = fault(QueryText({"s": f"sum({text})"}), {"x": Kind.INT}, {"x": [1, MOST]})
    assert "does not fit into int" in said
    assert fault(QueryText({"s": f"sum({text})"}), {"x": Kind.INT}, {"x": [1, None]}) == ""


def test_decimals_overflow_beyond_29_digits_before_the_point() -> None:
    column = pa.array([Decimal(10) ** 28], DECIMAL)
    for text in ("x * 10", "x * x", "x + x * decimal '9.5'", "x / decimal '0.01'"):
        said = fault(QueryText({"s": f"max({text})"}), {"x": Kind.DECIMAL}, {"x": column})
        assert "does not fit into decimal" in said, text


def test_a_record_that_is_left_out_cannot_overflow() -> None:
    columns = {"x": [3, MOST, None, 4], "s": [1, 2, 3, 4]}
    kinds = {"x": Kind.INT, "s": Kind.INT}
    for where in ("x < 100", "x < 100 and x * x < 100", "not (x >= 100 or x + 1 > 100)"):
        text = QueryText({"s": "sum(x * x)", "m": "median(x + 1)"}, where=where, key=["s"])
        rows = results(text, kinds, [columns])
        assert {row.key["s"]: row.values for row in rows} == {
            1: {"s": 9, "m": 4.0}, 4: {"s": 16, "m": 5.0}
        }  # fmt: skip


def test_a_branch_that_is_not_taken_cannot_overflow() -> None:
    safe = "case when x < 100 then x * x when x is null then -1 else 0 end"
    assert one({"s": f"sum({safe})"}, Kind.INT, [3, MOST, None]) == {"s": 8}
    assert one({"s": "sum(coalesce(x, 9223372036854775807 + 1))"}, Kind.INT, [3, 4]) == {"s": 7}


def test_the_overflow_of_another_stream_is_not_ones_own() -> None:
    text = QueryText({"s": "sum(x * x)"})
    running = Running({9: computation_of(text, {"ts": Kind.TIME, "x": Kind.INT})}, streams=(1,))
    running.take(batch_of({"x": [MOST]}, stream=2))
    running.take(batch_of({"x": [2]}, stream=1))
    assert not running.faults
    assert [row.values["s"] for row in running.rows(9)] == [4]


def test_columns_of_structs_have_the_path_as_their_name() -> None:
    column = pa.array([{"lat": 1.5, "of": {"city": "Ulm"}}, None, {"lat": 2.5, "of": None}])
    kinds = {"p.lat": Kind.FLOAT, "p.of.city": Kind.TEXT, "later": Kind.INT}
    text = QueryText({"s": "sum(p.lat)", "n": "count(later)"}, key=["p.of.city"])
    rows = results(text, kinds, [{"p": column}])
    assert {row.key["p.of.city"]: row.values for row in rows} == {
        "Ulm": {"s": 1.5, "n": 0}, None: {"s": 2.5, "n": 0}
    }  # fmt: skip


def test_columns_of_any_width_are_read_in_their_kind() -> None:
    columns = {
        "x": pa.array([2**64 - 1], pa.uint64()), "i": pa.array([-7], pa.int8()),
        "f": pa.array([0.5], pa.float32()), "t": pa.array([-1], pa.timestamp("ns", "UTC")),
        "d": pa.array([Decimal("1.25")], pa.decimal128(5, 2)), "w": pa.array([2**63 - 1]),
    }  # fmt: skip
    kinds = {"x": Kind.DECIMAL, "i": Kind.INT, "f": Kind.FLOAT, "t": Kind.TIME, "d": Kind.DECIMAL,
             "w": Kind.FLOAT}  # fmt: skip
    text = QueryText({name: f"max({name})" for name in kinds})
    (row,) = results(text, kinds, [columns])
    assert row.values == {
        "x": Decimal(2**64 - 1), "i": -7, "f": 0.5, "t": -1, "d": Decimal("1.25"), "w": 2.0**63
    }  # fmt: skip


def test_times_and_dates_beyond_those_of_python_can_be_read() -> None:
    columns = {
        "t": pa.array([2**60], pa.timestamp("ms", "UTC")), "d": pa.array([2**30], pa.date32())
    }  # fmt: skip
    text = QueryText({"t": "max(t)", "d": "max(d)"}, key=["d"])
    (row,) = results(text, {"t": Kind.TIME, "d": Kind.DATE}, [columns])
    assert row.values == {"t": 2**60, "d": "2941775-04-07"}
    assert row.key == {"d": "2941775-04-07"}
