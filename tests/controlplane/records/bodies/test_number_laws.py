"""Numbers of every format become exactly equal values of their column, or faults of their record.

The right values are computed by Python's `decimal` and `fractions`.
"""

import io
import json
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from controlplane.records.bodies import Format, conform
from controlplane.records.bodies.conformance import Conformed
from controlplane.wire.errors import BadBlock
from controlplane.wire.records.record_codec import to_record_batch
from controlplane.wire.schema import ColumnSpec, StreamSchema

INTEGERS: Final = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS: Final = ["float32", "float64"]
# No number of these columns has more digits before its point, or after it.
_MOST_BEFORE, _MOST_AFTER = 39, 10
_ANY: Final = Context(prec=100_000, Emax=10**18 - 1, Emin=-(10**18) + 1, traps=[])
REFUSED: Final = object()
# Numbers at the bounds of integers and decimals, which most of the others miss.
_BOUNDS: Final = [
    sign * (base**power + step)
    for base, powers in ((2, (0, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64)), (10, range(0, 39, 2)))
    for power in powers
    for step in (-1, 0, 1)
    for sign in (1, -1)
]
_EXPONENTS: Final = st.one_of(
    st.integers(-45, 45), st.integers(-5_000, 5_000),
    st.sampled_from([-(10**9) + 1, 10**9 - 1, -(2**31), 2**31, -(2**63), 10**17, -(10**17)]),
)  # fmt: skip
_DIGITS: Final = st.one_of(
    st.integers(0, 10**40).map(str),
    st.sampled_from(_BOUNDS).map(lambda number: str(abs(number))),
    st.builds(lambda digit, count: digit * count, st.sampled_from("0139"), st.integers(1, 3_000)),
)


@st.composite
def number_texts(draw: st.DrawFn) -> str:
    """Draw a number as JSON writes it, of up to thousands of digits, with any exponent."""
    sign = draw(st.sampled_from(["", "-"]))
    digits = draw(_DIGITS)
    if draw(st.booleans()):
        # The same digits with the point elsewhere, made up for by the exponent, or not.
        point = draw(st.integers(0, len(digits)))
        exponent = draw(st.one_of(st.just(len(digits) - point), _EXPONENTS))
        fraction = f".{digits[point:]}" if point < len(digits) else ""
        return f"{sign}{digits[:point].lstrip('0') or '0'}{fraction}e{exponent}"
    end = draw(st.sampled_from(["", ".0", ".000", ".5", ".10", ".000000001", "e0", "E+2", "00e-2"]))
    whole = digits.lstrip("0")
    return f"{sign}{whole}{end}" if whole else f"{sign}0.0e{len(digits)}"


def decimal_types() -> st.SearchStrategy[str]:
    scales = st.integers(0, 9)
    return scales.flatmap(
        lambda scale: st.integers(max(scale, 1), 29 + scale).map(
            lambda precision: f"decimal({precision}, {scale})"
        )
    )


TARGETS: Final = st.one_of(st.sampled_from(INTEGERS + FLOATS), decimal_types())


def exact(text: str) -> Fraction | None:
    """Return the number, None if it is of a size that no column of integers or decimals has."""
    value = Decimal(text, _ANY)
    if not value.is_normal(_ANY):
        # Zero, or an exponent that even Python does not have.
        return (
            None
            if any(digit in text.lower().split("e")[0] for digit in "123456789")
            else Fraction(0)
        )
    beyond = value.adjusted() > _MOST_BEFORE or value.adjusted() < -_MOST_AFTER
    return None if beyond else Fraction(value)


def stored(target: str, value: Fraction | None) -> Any:
    """Return what a column of integers or decimals holds of a number."""
    if value is None:
        return REFUSED
    if target.startswith("decimal"):
        precision, scale = (int(part) for part in target[8:-1].split(","))
        units = value * 10**scale
        fits = units.denominator == 1 and abs(units) < 10**precision
        return Decimal(int(units)).scaleb(-scale, Context(prec=60)) if fits else REFUSED
    bits, is_signed = int(target.lstrip("uint")), not target.startswith("u")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if is_signed else (0, 2**bits)
    return int(value) if value.denominator == 1 and low <= value < high else REFUSED


def nearest(target: str, text: str) -> Any:
    """Return the nearest float; numbers halfway take the one with the even last bit."""
    if abs(float(text)) == float("inf"):
        return REFUSED
    if target == "float64" or float(text) == 0:
        return float(text)
    with np.errstate(over="ignore"):
        near = np.float32(float(text))
    around = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    value = Fraction(Decimal(text))
    largest = Fraction(2) ** 128 - Fraction(2) ** 103
    if abs(value) >= largest:
        return REFUSED
    finite = [one for one in around if np.isfinite(one)]
    by_distance = [
        (abs(Fraction(float(one)) - value), int(one.view(np.uint32) & 1), float(one))
        for one in finite
    ]
    return min(by_distance)[2]


def right(target: str, text: str) -> Any:
    return nearest(target, text) if target in FLOATS else stored(target, exact(text))


def schema_of(target: str) -> StreamSchema:
    return StreamSchema((ColumnSpec("v", target),))


def check(found: Conformed, wanted: list[Any]) -> None:
    """Check that the record of each refused value is a fault, and the others have their values."""
    assert sorted(found.faults) == [i for i, value in enumerate(wanted) if value is REFUSED]
    held = found.batch.column("v").to_pylist()
    kept = [value for value in wanted if value is not REFUSED]
    assert held == kept
    for fields in found.faults.values():
        assert list(fields) == ["v"]
        assert len(fields["v"][0]) < 200
    found.batch.validate(full=True)
    assert all(reason and text for _, reason, text in found.faulty())


@given(TARGETS, st.lists(number_texts(), min_size=1, max_size=8))
@settings(max_examples=120)
def test_numbers_of_json(target: str, texts: list[str]) -> None:
    """No digit is lost on the way, whatever the number's size."""
    body = '{"records":[' + ",".join(f'{{"v":{text}}}' for text in texts) + "]}"
    lines = "\n".join(f'{{"v":{text}}}' for text in texts)
    wanted = [right(target, text) for text in texts]
    check(conform(body.encode(), Format.JSON, schema_of(target)), wanted)
    check(conform(lines.encode(), Format.NDJSON, schema_of(target)), wanted)


@given(TARGETS, st.lists(number_texts(), min_size=1, max_size=8), st.sampled_from(["", "+", "00"]))
@settings(max_examples=120)
def test_numbers_in_cells_of_csv(target: str, texts: list[str], begin: str) -> None:
    cells = [text if text.startswith("-") else begin + text for text in texts]
    found = conform("\n".join(["v", *cells, ""]).encode(), Format.CSV, schema_of(target))
    check(found, [right(target, text) for text in texts])


@given(decimal_types(), st.lists(number_texts(), min_size=1, max_size=8))
@settings(max_examples=120)
def test_decimals_as_text(target: str, texts: list[str]) -> None:
    """In JSON, in Arrow, and from a producer in Python."""
    wanted = [right(target, text) for text in texts]
    body = json.dumps([{"v": text} for text in texts]).encode()
    check(conform(body, Format.JSON, schema_of(target)), wanted)
    check(conform(arrow_of(pa.array(texts)), Format.ARROW, schema_of(target)), wanted)
    check_producer(target, [{"v": text} for text in texts], wanted)


@given(TARGETS, st.lists(number_texts(), min_size=1, max_size=8))
@settings(max_examples=120)
def test_nested_numbers(target: str, texts: list[str]) -> None:
    """In lists and objects; one item at fault is a fault of its record alone."""
    wanted = [right(target, text) for text in texts]
    schema = StreamSchema((ColumnSpec("v", f"list<struct<a: {target}>>"),))
    body = ",".join(f'{{"v":[{{"a":null}},{{"a":{text}}}]}}' for text in texts)
    found = conform(f"[{body}]".encode(), Format.JSON, schema)
    assert sorted(found.faults) == [i for i, value in enumerate(wanted) if value is REFUSED]
    assert all(fields["v"][0].startswith("[1].a: Must be") for fields in found.faults.values())
    kept = [[{"a": None}, {"a": value}] for value in wanted if value is not REFUSED]
    assert found.batch.column("v").to_pylist() == kept


SOURCES: Final = [
    *(getattr(pa, name)() for name in INTEGERS), pa.float16(), pa.float32(), pa.float64(),
    pa.decimal32(9, 2), pa.decimal64(18, 6), pa.decimal128(38, 12), pa.decimal128(38, 0),
    pa.decimal128(20, -3), pa.decimal256(76, 20),
]  # fmt: skip


@st.composite
def arrow_numbers(draw: st.DrawFn) -> Any:
    """Draw an Arrow array of any type of numbers, with nulls."""
    source = draw(st.sampled_from(SOURCES))
    if pa.types.is_integer(source):
        bits, is_signed = source.bit_width, pa.types.is_signed_integer(source)
        low = -(2 ** (bits - 1)) if is_signed else 0
        high = low + 2**bits - 1
        bounds = [number for number in _BOUNDS if low <= number <= high]
        values: Any = st.one_of(st.integers(low, high), st.sampled_from(bounds))
    elif pa.types.is_floating(source):
        bounds = [float(number) for number in _BOUNDS]
        width: Any = source.bit_width
        values = st.floats(width=width)
        if source.bit_width > 16:
            values |= st.sampled_from(bounds).map(lambda number: float(np.float32(number)))
        values |= st.integers(-200, 200).map(lambda number: float(np.float16(number / 10)))
    else:
        units = st.integers(-(10**source.precision) + 1, 10**source.precision - 1)
        zeros = st.integers(0, source.precision)
        values = st.builds(lambda n, k: n // 10**k * 10**k if n > 0 else n // 10**k, units, zeros)
        values = values.map(lambda n: Decimal(f"{n}E{-source.scale}"))
    drawn = draw(st.lists(st.one_of(values, st.none()), min_size=1, max_size=8))
    if pa.types.is_float16(source):
        drawn = [None if value is None else np.float16(value) for value in drawn]
    return pa.array(drawn, source)


def arrow_of(array: Any) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"v": array})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def right_of_arrow(target: str, source: Any, value: Any) -> Any:
    """Return what a column holds of an Arrow value."""
    if value is None:
        return None
    if isinstance(value, float):
        return right_of_float(target, source, value)
    return nearest(target, str(value)) if target in FLOATS else stored(target, Fraction(value))


def right_of_float(target: str, source: Any, value: float) -> Any:
    if target in FLOATS:
        with np.errstate(over="ignore"):
            near = value if target == "float64" else float(np.float32(value))
        return REFUSED if np.isfinite(value) and not np.isfinite(near) else near
    held = stored(target, Fraction(value) if np.isfinite(value) else None)
    if held is REFUSED and target.startswith("decimal") and np.isfinite(value):
        shortest = {16: np.float16, 32: np.float32, 64: np.float64}[source.bit_width](value)
        return stored(target, Fraction(str(shortest)))
    return held


@given(TARGETS, arrow_numbers())
@settings(max_examples=300)
def test_arrow_numbers_of_every_type(target: str, array: Any) -> None:
    """A float that a decimal does not have counts as its shortest text."""
    wanted = [right_of_arrow(target, array.type, value) for value in array.to_pylist()]
    numbers = [value for value in wanted if value == value]  # noqa: PLR0124 - NaN
    if len(numbers) == len(wanted):
        check(conform(arrow_of(array), Format.ARROW, schema_of(target)), wanted)
        check_producer(target, pa.table({"v": array}), wanted)
    lists = pa.ListArray.from_arrays(list(range(len(array) + 1)), array)
    schema = StreamSchema((ColumnSpec("v", f"list<{target}>"),))
    found = conform(arrow_of(lists), Format.ARROW, schema)
    assert sorted(found.faults) == [i for i, value in enumerate(wanted) if value is REFUSED]
    held = found.batch.column("v").to_pylist()
    np.testing.assert_array_equal(
        np.array([item for items in held for item in items], object),
        np.array([value for value in wanted if value is not REFUSED], object),
    )


def check_producer(target: str, data: Any, wanted: list[Any]) -> None:
    """Check that a producer appends all values, or names the first record that it refuses."""
    if REFUSED not in wanted:
        assert to_record_batch(1, data, schema_of(target)).column("v").to_pylist() == wanted
        return
    with pytest.raises(BadBlock, match="stream 1: record") as refused:
        to_record_batch(1, data, schema_of(target))
    assert refused.value.record == wanted.index(REFUSED)
    assert refused.value.column == "v"


@given(TARGETS, st.lists(number_texts(), min_size=1, max_size=8))
@settings(max_examples=120)
def test_decimals_and_integers_of_python(target: str, texts: list[str]) -> None:
    """As `Decimal`, and as `int` where it is one."""
    pairs = [(Decimal(text, _ANY), text) for text in texts]
    # Python has no exponents beyond 18 digits either.
    numbers = [(_python_number(value), text) for value, text in pairs if not value.is_nan()]
    assume(numbers)
    rows = [{"v": number} for number, _ in numbers]
    check_producer(target, rows, [right(target, text) for _, text in numbers])


def _python_number(value: Decimal) -> int | Decimal:
    is_whole = (
        value and abs(value.adjusted()) < 400 and value == value.to_integral_value(None, _ANY)
    )
    return int(value) if is_whole else value
