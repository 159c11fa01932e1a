"""Extreme values of every JSON type, as JSON text and as text of an address."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

# Raw JSON texts that `json.dumps` cannot write, by the marker that a body has in their place.
RAW: Final = {
    "@deep": "[" * 10_000 + "]" * 10_000,
    "@deep-objects": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "@deep-40": "[" * 40 + "]" * 40,
    "@digits": "9" * 5_000,
    "@exponent": "1e1000000000000000000",
    "@small": "1e-999999999",
    "@nan": "NaN",
    "@infinity": "-Infinity",
    "@twice": '{"a": 1, "a": 2}',
    "@nul": '"a\\u0000b"',
    "@half": '"\\ud800"',
    "@half-name": '{"\\udfff": 1}',
    "@bytes": '"\xff"',
}
INTEGERS: Final = (
    0, -1, 1, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**31) - 1,
    -(2**63), -(2**63) - 1, 10**30, 10**308,
)  # fmt: skip
NUMBERS: Final = (0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, 1.7976931348623157e308, 9e15)
TIMES: Final = (
    "9999-12-31T23:59:59-05:00", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+05:00",
    "0001-01-01T00:00:00Z", "0001-01-01", "9999-12-31", "10000-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "1969-12-31T23:59:59Z",
    "2026-01-01T00:00:00", "2026-06-30T23:59:60Z", "253402300800000", "-62135596800001",
    "99999999999999999999",
)  # fmt: skip
NAMES: Final = (
    "", " ", "0", "1", "2", "-1", "id:1", "id:99999999999999999999", "items", "keys", "get",
    "constructor", "__proto__", "toString", "<script>alert(1)</script>", "\"'`", "a\nb", "a\tb",
    "\u202eabc", "\u200b", "\U0001f680", "e\u0301", "x" * 100, "x" * 101, "x" * 50_000, "..",
    "../..", "a/b", "a%00b", "%", "\\", "{{ 1 }}", "{% x %}", "*", "?", "#", "null", "NaN", "true",
    "\ufeff", "\uffff", "\x7f", "\x1b[0m", "\u0661", "\u00b2", "=1+1", "'; DROP TABLE x; --",
)  # fmt: skip
OTHERS: Final[tuple[Any, ...]] = (
    None, True, False, [], {}, [[]], [None], [{}], {"": ""}, {"a": {"a": {"a": 1}}}, [1] * 2_000,
    ["x"] * 2_000, ["x", "x"], [""], [0], [-1], [2**63], ["\x00"], [1e308],
)  # fmt: skip
# Every extreme value of a body. A lone surrogate and NUL are escaped by `json.dumps`.
VALUES: Final[tuple[Any, ...]] = (
    *INTEGERS, *NUMBERS, *TIMES, *NAMES, *OTHERS, *RAW, "\x00", "a\x00b", "\ud800", "\udfff\ud800"
)  # fmt: skip
# The extreme values of a type or format of JSON schemas.
BY_TYPE: Final[Mapping[str, Sequence[Any]]] = {
    "integer": INTEGERS, "number": (*INTEGERS, *NUMBERS), "date-time": TIMES, "string": NAMES,
    "array": [value for value in OTHERS if isinstance(value, list)],
    "object": [value for value in OTHERS if isinstance(value, dict)],
}  # fmt: skip
# Every extreme value of a path or query string, percent-encoded where it is not ASCII.
TEXTS: Final = (
    *map(str, INTEGERS), "1e308", "nan", "inf", "-0", "+1", "1_000", "0x10", "9" * 5_000, *TIMES,
    *(name for name in NAMES if name), "\x00", "a\x00b",
)  # fmt: skip
# Percent-encoded bytes that are not UTF-8 text: a lone byte, half of a surrogate pair, a long form.
BAD_BYTES: Final = ("%FF", "%ED%A0%80", "%C0%80", "a%00b")
# Bodies that are not JSON, or not what any operation expects.
BODIES: Final = tuple(
    text.encode("latin-1")
    for text in (
        "", " ", "\x00", "\xff\xfe", "\xef\xbb\xbf{}", "{", "}", '{"a"', "nul", "null", "true",
        "1", '""', "[]", "{}", '{"a": "\xc3"}', '{"a": "\xed\xa0\x80"}', "{}{}", "// x", "{'a': 1}",
        '{"a": 1,}', '{"a": \x00}', '{"reason": "\x01"}', *RAW.values(),
        *(f'{{"reason": {raw}}}' for raw in RAW.values()),
    )
)  # fmt: skip


def json_text(value: Any) -> bytes:
    """Return a value as JSON with the raw texts of `RAW` in place of their markers."""
    text = json.dumps(value)
    for marker, raw in RAW.items():
        text = text.replace(f'"{marker}"', raw)
    return text.encode("latin-1")
