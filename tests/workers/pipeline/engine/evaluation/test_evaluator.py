"""Every function of the language on columns, against a plain interpreter record by record."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.language.functions import FUNCTIONS, OPERATORS
from controlplane.wire.language.parse import parsed
from controlplane.wire.language.registered import function
from controlplane.wire.language.tree import Kind
from tests.workers.pipeline.engine.plain import PLAIN, WITH_NULLS, value_of
from workers.pipeline.engine.evaluation.evaluator import Evaluator
from workers.pipeline.engine.kernels import KERNELS

COLUMNS = {
    "a": Kind.INT,
    "b": Kind.INT,
    "f": Kind.FLOAT,
    "name": Kind.TEXT,
    "yes": Kind.BOOL,
    "ts": Kind.TIME,
}
RECORDS: list[dict[str, Any]] = [
    {"a": 7, "b": 2, "f": 1.5, "name": "Abc d", "yes": True, "ts": 1_211_018_400_123},
    {"a": -7, "b": 2, "f": -2.5, "name": "", "yes": False, "ts": 0},
    {"a": 7, "b": -2, "f": 0.0, "name": " x%_y ", "yes": True, "ts": 951_782_400_000},
    {"a": 0, "b": 0, "f": 1e15, "name": "Gröse", "yes": None, "ts": 1_735_689_599_999},
    {"a": None, "b": 3, "f": None, "name": None, "yes": None, "ts": None},
    {"a": 5, "b": None, "f": 3.25, "name": "abc", "yes": False, "ts": -1_000},
]
TEXTS = [
    "a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "-a", "a + f", "f - 1", "f // 0.5",
    "f % 2", "a / 0", "a // 0", "a % 0", "7 // 2", "a = b", "a <> b", "a < f", "a <= 7", "a > b",
    "a >= b", "name = 'abc'", "name < 'b'", "yes and a > 0", "yes or a > 0", "not yes",
    "yes = true", "yes is true", "yes is not false", "a is null", "name is not null",
    "a in (5, 7, 9)", "a not in (5, null)", "name in ('abc', '')", "a between 1 and 6",
    "case when a > 0 then 'up' when a < 0 then 'down' end", "case a when 7 then b else f end",
    "case when yes then a end", "cast(f as int)", "a::float", "a::text", "cast(name as text)",
    "abs(a)", "abs(f)", "ceil(f)", "floor(f)", "floor(a)", "round(f)", "round(f, 1)", "sqrt(f)",
    "sqrt(a)", "power(a, 2)", "f ** 2", "ln(f)", "ln(a)", "exp(a)", "greatest(a, b)",
    "greatest(a, f, 2)", "least(a, b, 3)", "coalesce(a, b, 0)", "coalesce(name, 'none')",
    "nullif(a, 7)", "nullif(a, b)", "lower(name)", "upper(name)", "length(name)", "trim(name)",
    "substr(name, 2)", "substr(name, 1, 2)", "substr(name, b, a)", "concat(name, '!')",
    "name || '-' || name", "starts_with(name, 'ab')", "contains(name, '%')", "name like 'a%'",
    "name like '%_d'", "contains(name, trim(name))", "name like name", "epoch_ms(ts)", "year(ts)",
    "month(ts)", "day(ts)", "hour(ts)", "minute(ts)", "second(ts)", "day_of_week(ts)",
    "ts > '2008-05-17'", "ts - ts", "ts <= timestamp '1970-01-01'", "null", "1", "a = null",
    "null = null", "coalesce(null, a)", "case when null then 1 else 2 end", "'x'", "3 + 4 * 2",
    "hour(timestamp '2008-05-17T10:00:00Z')", "round(f, b)", "substr('abc', b)",
    "cast(a as decimal)", "cast(f as decimal)", "cast(ts as date)", "isnan(f)", "isfinite(f)",
    "cast(cast(ts as date) as timestamp)", "cast(ts as date) - date '2008-05-17'",
    "cast(a as decimal) + decimal '0.5'", "lower(null)", "case when a > 6 then name like 'A%' end",
]  # fmt: skip


def evaluated(text: str, records: list[dict[str, Any]]) -> list[Any]:
    columns = {
        name: pa.array([record[name] for record in records], ARROW[kind])
        for name, kind in COLUMNS.items()
    }
    expression = parsed(text, COLUMNS)
    found = Evaluator(columns, len(records)).array(expression)
    assert found.type == ARROW[expression.kind]
    assert len(found) == len(records)
    if expression.kind is Kind.TIME:
        found = found.cast(pa.int64())
    elif expression.kind is Kind.DATE:
        found = found.cast(pa.int32())
    return list(found.to_pylist())


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, int | float):
        return math.isclose(left, right, rel_tol=1e-12) or (math.isnan(left) and math.isnan(right))
    return type(left) is type(right) and left == right


@pytest.mark.parametrize("text", TEXTS)
def test_columns_agree_with_one_record_at_a_time(text: str) -> None:
    expression = parsed(text, COLUMNS)
    for found, record in zip(evaluated(text, RECORDS), RECORDS, strict=True):
        assert same(found, value_of(expression, record)), record


def test_every_function_computes_and_is_tried() -> None:
    assert set(KERNELS) == {*OPERATORS, *FUNCTIONS}
    assert set(KERNELS) == {*PLAIN, *WITH_NULLS, "hash"}


whole = st.one_of(st.none(), st.integers(-(10**9), 10**9))
records = st.fixed_dictionaries(
    {
        "a": whole,
        "b": whole,
        "f": st.one_of(st.none(), st.floats(-1e9, 1e9).map(lambda value: round(value, 3))),
        "name": st.one_of(st.none(), st.text(max_size=5)),
        "yes": st.sampled_from([True, False, None]),
        "ts": st.one_of(st.none(), st.integers(0, 2**41)),
    }
)
MIXED = (
    "(a // 1000) * 1000 + b % 60",
    "case when a > b or yes then greatest(a, b) else coalesce(b, -1) end",
    "a % 7 = b % 7 and not yes is null",
    "coalesce(length(name), 0) + floor(f)",
    "hour(ts) * 60 + minute(ts)",
)


# On a busy machine drawing records is slow.
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(records, min_size=1, max_size=8), st.sampled_from(MIXED))
def test_random_records_agree(found: list[dict[str, Any]], text: str) -> None:
    expression = parsed(text, COLUMNS)
    for value, record in zip(evaluated(text, found), found, strict=True):
        assert same(value, value_of(expression, record)), record


def test_equal_values_have_one_hash_in_every_process() -> None:
    hashes = evaluated("hash(a)", RECORDS)
    assert hashes[0] == hashes[2] != hashes[1]
    assert hashes[4] is None
    assert evaluated("hash('abc')", RECORDS[:1]) == [-7867839195469854840]
    assert evaluated("hash(12)", RECORDS[:1]) == [9_086_514_976_817_923_733]


def test_a_registered_function_is_called_with_whole_columns() -> None:
    @function(takes=("int", "float"), gives="float")
    def test_mix(left: Any, right: Any) -> Any:
        """Add half of the other."""
        assert isinstance(left, np.ndarray)
        return left + right / 2

    assert evaluated("test_mix(a, b)", RECORDS)[:2] == [8.0, -6.0]
    assert evaluated("test_mix(a, b)", RECORDS)[3:] == [0.0, None, None]
    with pytest.raises(ValueError, match="already"):
        function(takes=("int",), gives="int", name="sqrt")(abs)
