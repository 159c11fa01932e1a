"""Values of any size are rounded to any number of digits, and no text position is too large."""

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.language.parse import parsed
from controlplane.wire.language.tree import Kind
from tests.workers.pipeline.engine.test_numbers import one
from workers.pipeline.engine.evaluation.evaluator import Evaluator

KINDS = {"f": Kind.FLOAT, "d": Kind.DECIMAL, "i": Kind.INT, "s": Kind.TEXT}
MOST, LEAST = 2**63 - 1, -(2**63)
DIGITS = st.one_of(st.integers(-12, 12), st.integers(-400, 400), st.sampled_from([MOST, LEAST]))


def values(text: str, column: str, given_values: list[Any], digits: list[int]) -> list[Any]:
    """Return an expression over a column and the numbers `i`."""
    columns = {
        column: pa.array(given_values, ARROW[KINDS[column]]), "i": pa.array(digits, pa.int64())
    }  # fmt: skip
    result: list[Any] = Evaluator(columns, len(digits)).array(parsed(text, KINDS)).to_pylist()
    return result


@pytest.mark.parametrize(
    ("number", "digits", "rounded"),
    [
        (1e308, 2, 1e308), (1e308, -400, 0.0), (1e308, -308, 1e308), (1.7e308, -308, math.inf),
        (-1.7e308, -308, -math.inf), (5e-324, 400, 5e-324), (1.5, MOST, 1.5), (1.5, LEAST, 0.0),
        (2.5, 0, 2.0), (1.25, 1, 1.2), (155.0, -1, 160.0), (145.0, -1, 140.0), (0.1, 30, 0.1),
        (2.0**53, 3, 2.0**53), (math.inf, 2, math.inf), (-math.inf, -400, -math.inf),
        (1.005, 15, 1.005), (2.0**63, -15, 9.223e18), (-1e22, -22, -1e22), (5e18, -19, 0.0),
        (5e-324, -1, 0.0), (math.inf, -1, math.inf), (0.7, 0, 1.0), (-0.7, 0, -1.0),
    ],
)  # fmt: skip
def test_a_float_of_any_size_is_rounded(number: float, digits: int, rounded: float) -> None:
    literal = f"round(f, {digits})" if digits != LEAST else "round(f, -9223372036854775808)"
    assert values(literal, "f", [number], [0]) == [rounded]
    assert values("round(f, i)", "f", [number], [digits]) == [rounded]
    assert values("round(f, i)", "f", [number, 1.5], [digits, 0])[0] == rounded


@pytest.mark.parametrize("divisor", [-3, -2, -1, 1, 2, 3])
def test_whole_numbers_are_divided_and_rounded_down(divisor: int) -> None:
    """With a rest that has the sign of the divisor, as in Python."""
    numbers = list(range(-7, 8))
    floored, rest = (
        values(f"i {sign} {divisor}", "f", [0.0] * 15, numbers) for sign in ("//", "%")
    )
    assert floored == [number // divisor for number in numbers]
    assert rest == [number % divisor for number in numbers]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.floats(), DIGITS), min_size=1, max_size=8))
def test_each_float_is_rounded_as_alone_and_near_the_exact_value(
    pairs: list[tuple[float, int]],
) -> None:
    numbers, digits = [list(part) for part in zip(*pairs, strict=True)]
    found = values("round(f, i)", "f", numbers, [int(one) for one in digits])
    for number, places, result in zip(numbers, digits, found, strict=True):
        alone = values(f"round(f, {places})", "f", [number], [0])[0]
        assert alone == result or (math.isnan(alone) and math.isnan(result))
        if math.isfinite(number) and math.isfinite(result):
            half = Decimal(5).scaleb(-max(-400, min(int(places), 400)) - 1)
            error = abs(Decimal(result) - Decimal(number))
            assert error <= half + abs(Decimal(number)) * Decimal("1e-15")


@settings(deadline=None, max_examples=60)
@given(st.integers(-(10**37), 10**37), DIGITS)
def test_a_decimal_is_rounded_half_to_even(units: int, digits: int) -> None:
    exact = Context(prec=120)
    number = Decimal(units).scaleb(-9, exact)
    places = max(-60, min(digits, 9))
    wanted = number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN, exact)
    assert values("round(d, i)", "d", [number], [digits]) == [wanted]
    assert values(f"round(d, {digits})", "d", [number], [0]) == [wanted]


@pytest.mark.parametrize("first", [LEAST, -1, 0, 2, 2**31, MOST])
@pytest.mark.parametrize("size", [LEAST, -1, 0, 2, 2**31, MOST])
def test_a_part_of_a_text_at_any_position(first: int, size: int) -> None:
    begin = max(first, 1) - 1
    wanted = "äbc"[begin : begin + max(size, 0)]
    assert values(f"substr(s, {first}, {size})", "s", ["äbc"], [0]) == [wanted]
    assert values(f"substr(s, i, {size})", "s", ["äbc"], [first]) == [wanted]
    assert values(f"substr(s, {first}, i)", "s", ["äbc"], [size]) == [wanted]


def test_a_negative_decimal_has_all_its_digits() -> None:
    digits = "12345678901234567890123456789.123456789"
    assert values(f"-decimal '{digits}'", "d", [None], [0]) == [Decimal(f"-{digits}")]


def test_the_largest_of_nulls_and_a_value_is_the_value() -> None:
    assert values("greatest(null, null, f)", "f", [1.5], [0]) == [1.5]
    assert values("least(null, null, i, f)", "f", [1.5], [2]) == [1.5]


def test_a_query_goes_on_after_values_of_any_size() -> None:
    aggregates = {"most": "max(round(x, 2))", "total": "sum(round(x, -400))"}
    assert one(aggregates, Kind.FLOAT, [1e308, 2.675], [3.0]) == {"most": 1e308, "total": 0.0}
