"""Conversion of Python values, and of Arrow arrays, to columns whose types may be nested."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from controlplane.wire.records.casts import FAILURES, CastRules
from controlplane.wire.records.conversion import (
    MAX_BITS,
    Converted,
    TooManyFaults,
    convert,
    with_faults,
    with_nulls,
)
from controlplane.wire.records.numbers import NumberText, is_number

_NAME: Final = 40
# The Arrow type of the values of a Python type; Arrow infers the others.
_NATURAL: Final[Mapping[type, Any]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    date: pa.date32(),
    datetime: pa.timestamp("us", "UTC"),
}
_LISTS: Final = (list, tuple, np.ndarray)
_ARROW_LISTS: Final = (
    pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list,
    pa.types.is_list_view, pa.types.is_large_list_view,
)  # fmt: skip
_NO_FIELD: Final = "There is no such field"


def convert_array(array: Any, target: Any, rules: CastRules) -> Converted:
    """Return an Arrow array (no chunks) as the target type. Raises `TooManyFaults`."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    source = array.type
    if source.equals(target) and not _has_times(target):
        return Converted(array, {})
    if pa.types.is_list(target) and _is_list(source):
        array = array.cast(pa.list_(source.value_type))
        child = _child(convert_array, array.flatten(), target.value_type, rules)
        return _listed(array.value_lengths(), child, target)
    if pa.types.is_struct(target) and pa.types.is_struct(source):
        return _structs_of_array(array, target, rules)
    if pa.types.is_nested(target):
        return with_faults(array, pa.nulls(len(array), target))
    return convert(array, target, rules)


def convert_values(values: Sequence[Any], target: Any, rules: CastRules) -> Converted:
    """Return Python values as the target type; None is null. Raises `TooManyFaults`."""
    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return Converted(pa.nulls(len(values), target), {})
    if len(kinds) == 1:
        return _of_kind(values, kinds.pop(), target, rules)
    parts = []
    for kind in kinds:
        places = [index for index, value in enumerate(values) if type(value) is kind]
        try:
            part = _of_kind([values[index] for index in places], kind, target, rules)
        except TooManyFaults as many:
            first = {places[index]: why for index, why in many.faults.items()}
            raise TooManyFaults(first) from None
        parts.append((places, part))
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


def _of_kind(values: Sequence[Any], kind: type, target: Any, rules: CastRules) -> Converted:
    """Return values of one Python type and nulls."""
    if issubclass(kind, _LISTS) and pa.types.is_list(target):
        return _lists(values, target, rules)
    if issubclass(kind, Mapping) and pa.types.is_struct(target):
        return _structs(values, target, rules)
    if pa.types.is_nested(target) or issubclass(kind, (*_LISTS, Mapping)):
        return with_faults(values, pa.nulls(len(values), target))
    if issubclass(kind, NumberText | Decimal):
        return _by_digits(values, kind, target, rules)
    return _plain(values, kind, target, rules)


def _plain(values: Sequence[Any], kind: type, target: Any, rules: CastRules) -> Converted:
    """Return values of a type that Arrow takes."""
    try:
        array = _array_of(values, kind)
    except OverflowError:
        return _by_digits(values, kind, target, rules)
    except FAILURES:
        fits = [value is None or _fits(value, kind) for value in values]
        fitting = [value if fit else None for value, fit in zip(values, fits, strict=True)]
        kept = [] if all(fits) else fitting
        result = convert_values(kept, target, rules).array if kept else pa.nulls(len(fits), target)
        return with_faults(values, result)
    return convert_array(array, target, rules)


def _array_of(values: Sequence[Any], kind: type) -> Any:
    """Return the values of one Python type as Arrow has them."""
    if hasattr(kind, "to_datetime64"):
        # Arrow would read the times of pandas without their nanoseconds.
        return pa.array([None if value is None else value.to_datetime64() for value in values])
    return pa.array(values, _NATURAL.get(datetime if issubclass(kind, datetime) else kind))


def _by_digits(values: Sequence[Any], kind: type, target: Any, rules: CastRules) -> Converted:
    """Return numbers by the text of their digits, which has no limits."""
    if not (is_number(target) or pa.types.is_timestamp(target)):
        return with_faults(values, pa.nulls(len(values), target))
    texts = pa.array(values if kind is NumberText else map(_digits, values), pa.string())
    return with_faults(
        values, convert(texts, target, CastRules(textual=True, zone=rules.zone)).array
    )


def _digits(value: Any) -> str | None:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        # Python writes at most 4,300 digits; no column has so many.
        return ""
    return None if value is None else str(value)


def _fits(value: Any, kind: type) -> bool:
    """Return True if Arrow takes a value; text with half of a surrogate pair is not Unicode."""
    try:
        _array_of([value], kind)
    except FAILURES:
        return False
    return True


def _lists(values: Sequence[Any], target: Any, rules: CastRules) -> Converted:
    inner = [item for value in values if value is not None for item in value]
    lengths = pa.array([None if value is None else len(value) for value in values], pa.int32())
    child = _child(convert_values, inner, target.value_type, rules)
    return _listed(lengths, child, target)


def _listed(lengths: Any, child: Converted, target: Any) -> Converted:
    """Return lists of the given lengths, null included, over the converted items."""
    ends = np.cumsum(np.asarray(lengths.fill_null(0)), dtype=np.int32)
    starts = np.concatenate(([np.int32(0)], ends))
    faults: dict[int, str] = {}
    for index, why in child.faults.items():
        row = int(np.searchsorted(ends, index, side="right"))
        faults.setdefault(row, _inside(f"[{index - starts[row]}]", why))
    offsets: Any = pa.array(starts)
    array = pa.ListArray.from_arrays(offsets, child.array, type=target, mask=lengths.is_null())
    return Converted(with_nulls(array, faults), faults)


def _structs(values: Sequence[Any], target: Any, rules: CastRules) -> Converted:
    names = {field.name for field in target}
    rows: list[Mapping[str, Any]] = [{} if value is None else value for value in values]
    faults: dict[int, str] = {}
    for place, row in enumerate(rows):
        if not names.issuperset(row):
            extra = next(name for name in row if name not in names)
            faults[place] = _inside(f".{str(extra)[:_NAME]}", _NO_FIELD)
    children = [
        _child(convert_values, [row.get(field.name) for row in rows], field.type, rules)
        for field in target
    ]
    return _structured([value is not None for value in values], children, faults, target)


def _structs_of_array(array: Any, target: Any, rules: CastRules) -> Converted:
    names = [field.name for field in array.type]
    twice = [name for name, count in Counter(names).items() if count > 1]
    wrong = dict.fromkeys(twice, "There are two fields of this name")
    wrong |= {name: _NO_FIELD for name in names if target.get_field_index(name) < 0}
    known = array.is_valid().to_pylist()
    faults: dict[int, str] = {}
    if wrong:
        name, why = next(iter(wrong.items()))
        places = [place for place, is_known in enumerate(known) if is_known]
        faults = dict.fromkeys(places, _inside(f".{name[:_NAME]}", why))
        # No field is converted: each fault has its place already.
        array = pa.nulls(len(array), pa.struct([]))
    inner = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    missing = pa.nulls(len(array))
    children = [
        _child(convert_array, inner.get(field.name, missing), field.type, rules) for field in target
    ]
    return _structured(known, children, faults, target)


def _structured(
    known: list[bool], children: Sequence[Converted], faults: dict[int, str], target: Any
) -> Converted:
    """Return structs over converted fields, null where a value is not known or has a fault."""
    for field, child in zip(target, children, strict=True):
        for place, why in child.faults.items():
            faults.setdefault(place, _inside(f".{field.name}", why))
    mask = pa.array([not is_known or place in faults for place, is_known in enumerate(known)])
    arrays = [child.array for child in children]
    fields = list(target)
    return Converted(
        pa.StructArray.from_arrays(arrays, fields=fields, mask=mask.cast(pa.bool_())), faults
    )


def _child(
    step: Callable[[Any, Any, CastRules], Converted], values: Any, target: Any, rules: CastRules
) -> Converted:
    try:
        return step(values, target, rules)
    except TooManyFaults:
        # Their indices are not those of records.
        raise TooManyFaults from None


def _inside(step: str, why: str) -> str:
    """Return the reason with the place in a nested value before it: `.stops[2]: Must be …`."""
    return f"{step}{why}" if why[0] in ".[" else f"{step}: {why}"


def _is_list(arrow: Any) -> bool:
    return any(check(arrow) for check in _ARROW_LISTS)


@lru_cache(maxsize=1024)
def _has_times(arrow: Any) -> bool:
    """Return True if a type has dates or times, which may be of other years than 1 to 9999."""
    inner = [arrow.field(index).type for index in range(arrow.num_fields)]
    return pa.types.is_temporal(arrow) or any(map(_has_times, inner))
