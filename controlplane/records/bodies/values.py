"""Conversion of Python values, as JSON gives them, and of nested Arrow columns."""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from algorithms.strict_json import check_bounds
from controlplane.records.bodies.casts import is_number, is_text
from controlplane.records.bodies.conversion import (
    FAILURES,
    MAX_BITS,
    Converted,
    Rules,
    TooManyFaults,
    all_faulty,
    convert,
    reason,
    with_nulls,
)

_NAME: Final = 40
_INT64: Final = range(-(2**63), 2**63)
# The Arrow type of the values of a Python type; Arrow infers the others.
_NATURAL: Final[Mapping[type, Any]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    date: pa.date32(),
}


def convert_array(array: Any, target: Any, rules: Rules) -> Converted:
    """Return an Arrow array (no chunks) as the target type, which may be nested."""
    if not pa.types.is_nested(target):
        return convert(array, target, rules)
    if array.type.equals(target):
        return Converted(array, {})
    if is_text(array.type) and rules.textual:
        # A cell of CSV has JSON where the column is nested.
        inner = [_from_json(text) for text in array.to_pylist()]
        return convert_values(inner, target, Rules(finite=True, zone=rules.zone))
    return convert_values(array.to_pylist(), target, Rules(zone=rules.zone))


def convert_values(values: Sequence[Any], target: Any, rules: Rules) -> Converted:
    """Return Python values as the target type; None is null."""
    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return Converted(pa.nulls(len(values), target), {})
    if len(kinds) == 1:
        return _of_kind(values, kinds.pop(), target, rules)
    parts = []
    for kind in kinds:
        places = [index for index, value in enumerate(values) if type(value) is kind]
        parts.append((places, _of_kind([values[index] for index in places], kind, target, rules)))
    return _scattered(len(values), parts, target)


def _scattered(
    count: int, parts: Sequence[tuple[Sequence[int], Converted]], target: Any
) -> Converted:
    """Return one array of separately converted parts, in the original order."""
    faults: dict[int, str] = {}
    order = [0] * count
    arrays, begin = [pa.nulls(1, target)], 1
    for places, converted in parts:
        for offset, index in enumerate(places):
            order[index] = begin + offset
        faults |= {places[index]: why for index, why in converted.faults.items()}
        arrays.append(converted.array)
        begin += len(places)
    return Converted(pa.concat_arrays(arrays).take(pa.array(order, pa.int64())), faults)


def _of_kind(values: Sequence[Any], kind: type, target: Any, rules: Rules) -> Converted:
    """Return values of one Python type and nulls."""
    if pa.types.is_nested(target) or kind in (list, dict):
        return _nested(values, kind, target, rules)
    if kind is Decimal:
        return _decimals(values, target, rules)
    if kind is float and rules.finite and (infinite := _infinite(values)):
        return _split(values, infinite, target, rules)
    return _plain(values, kind, target, rules)


def _nested(values: Sequence[Any], kind: type, target: Any, rules: Rules) -> Converted:
    if kind is list and pa.types.is_list(target):
        return _lists(values, target, rules)
    if kind is dict and pa.types.is_struct(target):
        return _structs(values, target, rules)
    return all_faulty(values, target)


def _plain(values: Sequence[Any], kind: type, target: Any, rules: Rules) -> Converted:
    try:
        array = pa.array(values, _NATURAL.get(kind))
    except OverflowError:
        return _integers(values, target, rules)
    except FAILURES:
        bad = [index for index, value in enumerate(values) if not _fits(value)]
        return _split(values, bad, target, rules) if bad else all_faulty(values, target)
    return convert(array, target, rules)


def _decimals(values: Sequence[Any], target: Any, rules: Rules) -> Converted:
    """Return numbers with all digits for a decimal column, as floats for others."""
    if pa.types.is_decimal(target):
        texts = [None if value is None else str(value) for value in values]
        return convert(pa.array(texts, pa.string()), target, rules)
    floats = [None if value is None else float(value) for value in values]
    return _of_kind(floats, float, target, rules)


def _integers(values: Sequence[Any], target: Any, rules: Rules) -> Converted:
    """Return whole numbers of which some need more than 64 bits with sign: these by their digits.

    They fit into uint64, decimals and floats.
    """
    large = [place for place, v in enumerate(values) if v is not None and v not in _INT64]
    beyond = [place for place in large if values[place].bit_length() > MAX_BITS]
    if beyond:
        return _split(values, beyond, target, rules)
    texts = pa.array([str(values[place]) for place in large], pa.string())
    textual = Rules(textual=True, zone=rules.zone)
    # In columns that are no numbers digits would be text, or a time.
    converted = convert(texts, target, textual if is_number(target) else Rules())
    faults = {index: reason(target, values[large[index]]) for index in converted.faults}
    small = [place for place, v in enumerate(values) if v is None or v in _INT64]
    parts = [
        (large, Converted(converted.array, faults)),
        (small, convert_values([values[place] for place in small], target, rules)),
    ]
    return _scattered(len(values), parts, target)


def _split(values: Sequence[Any], bad: Sequence[int], target: Any, rules: Rules) -> Converted:
    """Return the converted values without the given ones, which become faults."""
    faults = {place: reason(target, values[place]) for place in bad}
    others = [None if place in faults else value for place, value in enumerate(values)]
    converted = convert_values(others, target, rules)
    return Converted(converted.array, faults | converted.faults)


def _infinite(values: Sequence[Any]) -> list[int]:
    infinite = (float("inf"), float("-inf"))
    return [index for index, value in enumerate(values) if value in infinite]


def _fits(value: Any) -> bool:
    """Return True if Arrow takes a value; text with half of a surrogate pair is no Unicode."""
    try:
        pa.array([value])
    except FAILURES:
        return False
    return True


def _lists(values: Sequence[Any], target: Any, rules: Rules) -> Converted:
    offsets: list[int | None] = []
    inner: list[Any] = []
    owner: list[int] = []
    for row, value in enumerate(values):
        offsets.append(None if value is None else len(inner))
        inner += value or ()
        owner += [row] * len(value or ())
    child = _child(inner, target.value_type, rules)
    faults: dict[int, str] = {}
    for index, why in child.faults.items():
        row = owner[index]
        faults.setdefault(row, _inside(f"[{index - (offsets[row] or 0)}]", why))
    starts = pa.array([*offsets, len(inner)], pa.int32())
    array = pa.ListArray.from_arrays(starts, child.array, type=target)
    return Converted(with_nulls(array, faults), faults)


def _structs(values: Sequence[Any], target: Any, rules: Rules) -> Converted:
    names = {field.name for field in target}
    rows: list[Mapping[str, Any]] = [value or {} for value in values]
    faults: dict[int, str] = {}
    for place, row in enumerate(rows):
        if not names.issuperset(row):
            extra = next(name for name in row if name not in names)
            faults[place] = _inside(f".{str(extra)[:_NAME]}", "There is no such field")
    children = []
    for field in target:
        child = _child([row.get(field.name) for row in rows], field.type, rules)
        children.append(child.array)
        for place, why in child.faults.items():
            faults.setdefault(place, _inside(f".{field.name}", why))
    mask = pa.array(
        [value is None or place in faults for place, value in enumerate(values)], pa.bool_()
    )
    array = pa.StructArray.from_arrays(children, fields=list(target), mask=mask)
    return Converted(array, faults)


def _child(values: Sequence[Any], target: Any, rules: Rules) -> Converted:
    try:
        return convert_values(values, target, rules)
    except TooManyFaults:
        # Their indices are not those of records.
        raise TooManyFaults from None


def _inside(step: str, why: str) -> str:
    """Return the reason with the place in a nested value before it: `.stops[2]: Must be …`."""
    return f"{step}{why}" if why[0] in ".[" else f"{step}: {why}"


def _from_json(text: str | None) -> Any:
    """Return the nested value of a cell with JSON, or its text if it is no JSON within bounds."""
    if text is None:
        return None
    try:
        check_bounds(text.encode())
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
