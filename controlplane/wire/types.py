"""Column types of streams: names, Arrow types, and kinds in queries.

A type is written as in Arrow: `int32`, `float64`, `decimal(12, 2)`, `timestamp(us)`,
`list<string>`, `struct<lat: float64, lon: float64>`.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from controlplane.wire.errors import WireError
from controlplane.wire.language.tree import Kind

_PLAIN: Final[Mapping[str, Any]] = {
    "bool": pa.bool_(),
    **{f"int{bits}": getattr(pa, f"int{bits}")() for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": getattr(pa, f"uint{bits}")() for bits in (8, 16, 32, 64)},
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
}
_DECIMAL: Final = re.compile(r"decimal\((\d{1,2}), ?(\d{1,2})\)")
_TIMESTAMP: Final = re.compile(r"timestamp(?:\((s|ms|us|ns)\))?")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Queries compute with decimal128(38, 9), as BigQuery's NUMERIC.
DECIMAL_SCALE: Final = 9
_INTEGER_DIGITS: Final = 29
# Equivalent Arrow types, by the name of the column type.
_FAMILIES: Final = (
    ((pa.types.is_large_string, pa.types.is_string_view), "string"),
    ((pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary), "binary"),
    ((pa.types.is_date,), "date"),
)
# The first match decides: uint64 is an integer, too.
_KINDS: Final = (
    (pa.types.is_boolean, Kind.BOOL),
    (pa.types.is_uint64, Kind.DECIMAL),
    (pa.types.is_decimal, Kind.DECIMAL),
    (pa.types.is_integer, Kind.INT),
    (pa.types.is_floating, Kind.FLOAT),
    (pa.types.is_string, Kind.TEXT),
    (pa.types.is_timestamp, Kind.TIME),
    (pa.types.is_date, Kind.DATE),
)
# Parsing is recursive.
MAX_TYPE_LENGTH: Final = 1000
MAX_DEPTH: Final = 8


class BadType(WireError):
    """A text is not a column type; the message lists the types."""


def type_names() -> list[str]:
    """Return the syntax of all types, for forms and error messages."""
    return [*_PLAIN, "decimal(precision, scale)", "timestamp(ms)", "list<type>",
            "struct<name: type, ...>"]  # fmt: skip


@lru_cache(maxsize=4096)
def arrow_type(text: str) -> Any:
    """Return the Arrow type of a text. Raises `BadType`."""
    if len(text) > MAX_TYPE_LENGTH:
        raise BadType(f"has {len(text):,} characters, {MAX_TYPE_LENGTH:,} are allowed")
    return _parse(text.strip(), 0)


def _parse(text: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise BadType(f"is nested more than {MAX_DEPTH} levels deep")
    if text in _PLAIN:
        return _PLAIN[text]
    if match := _DECIMAL.fullmatch(text):
        return _decimal(int(match[1]), int(match[2]))
    if match := _TIMESTAMP.fullmatch(text):
        return pa.timestamp(match[1] or "ms", tz="UTC")
    if text.startswith("list<") and text.endswith(">"):
        return pa.list_(_parse(text[5:-1].strip(), depth + 1))
    if text.startswith("struct<") and text.endswith(">"):
        return pa.struct([_struct_field(part, depth) for part in _split(text[7:-1])])
    raise BadType(f"{text[:100]!r} is not a type; the types are {', '.join(type_names())}")


def _decimal(precision: int, scale: int) -> Any:
    if not 1 <= precision <= 38 or scale > DECIMAL_SCALE or scale > precision:  # noqa: PLR2004
        raise BadType(
            f"decimal({precision}, {scale}): the precision is 1 to 38 and the scale 0 to "
            f"{DECIMAL_SCALE}"
        )
    if precision - scale > _INTEGER_DIGITS:
        raise BadType(
            f"decimal({precision}, {scale}) has more than {_INTEGER_DIGITS} digits before the point"
        )
    return pa.decimal128(precision, scale)


def _struct_field(text: str, depth: int) -> Any:
    name, colon, rest = text.partition(":")
    if not colon or not _NAME.fullmatch(name.strip()):
        raise BadType(f"{text[:100]!r} is not `name: type`")
    return pa.field(name.strip(), _parse(rest.strip(), depth + 1))


def _split(text: str) -> list[str]:
    """Return the parts between commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for index, sign in enumerate(text):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def type_name(arrow: Any) -> str:
    """Return the name of an Arrow type, the inverse of `arrow_type`.

    Equivalent types have one name: large or dictionary-encoded strings are `string`, timestamps of
    any zone are in UTC. Raises `BadType` for unsupported types.
    """
    if pa.types.is_dictionary(arrow):
        return type_name(arrow.value_type)
    for is_it, name in _FAMILIES:
        if any(check(arrow) for check in is_it):
            return name
    if pa.types.is_timestamp(arrow):
        return f"timestamp({arrow.unit})"
    if pa.types.is_decimal(arrow):
        _decimal(arrow.precision, arrow.scale)
        return f"decimal({arrow.precision}, {arrow.scale})"
    return _nested_name(arrow)


def _nested_name(arrow: Any) -> str:
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return f"list<{type_name(arrow.value_type)}>"
    if pa.types.is_struct(arrow):
        parts = (f"{item.name}: {type_name(item.type)}" for item in arrow)
        return f"struct<{', '.join(parts)}>"
    for name, plain in _PLAIN.items():
        if arrow.equals(plain):
            return name
    raise BadType(f"a column cannot be {arrow}; the types are {', '.join(type_names())}")


def kind_of(arrow: Any) -> Kind | None:
    """Return the kind of a column in queries, None if queries cannot read it.

    Integers that fit into 64 bits with sign are `int`; `uint64` is a decimal. Queries cannot read
    binary columns and lists; the fields of a struct are columns `name.field`.
    """
    return next((kind for is_it, kind in _KINDS if is_it(arrow)), None)
