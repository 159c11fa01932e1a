"""The kernel of each function and operator on Arrow columns.

The result for null is null, but for exceptions in `functions.py` of the language. An undefined
result (a division by 0, the root of a negative number) is null too. A result that does not fit into
its type raises `pyarrow.ArrowInvalid`: nothing wraps. NaN equals NaN and is greater than every
other number, and -0.0 equals 0.0, in comparisons, order, keys and hashes. Texts are compared and
taken as given, character by character (code points).
"""

from collections.abc import Callable
from typing import Any, Final

from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.kernels.arithmetic import ARITHMETIC
from workers.pipeline.engine.kernels.comparison import COMPARISONS
from workers.pipeline.engine.kernels.conversion import CONVERSIONS
from workers.pipeline.engine.kernels.types import Kernel, Value, nothing_like

_LOGIC: Final[dict[str, Callable[..., Value]]] = {
    "and": lambda left, right: pc.and_kleene(left.cast(pa.bool_()), right.cast(pa.bool_())),
    "or": lambda left, right: pc.or_kleene(left.cast(pa.bool_()), right.cast(pa.bool_())),
    "not": lambda value: pc.invert(value.cast(pa.bool_())),
    "is null": pc.is_null,
}
# Arrow's texts are shorter, in characters.
_LONGEST_TEXT: Final = 2**31
_TIMES: Final[dict[str, Callable[..., Value]]] = {
    "epoch_ms": lambda value: value.cast(pa.int64()),
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "day_of_week": lambda value: pc.add(pc.day_of_week(value), 1),
}


def _text_test(kernel: Kernel) -> Kernel:
    """Apply a kernel for constant patterns to each distinct pattern."""

    def call(value: Value, pattern: Value) -> Value:
        if isinstance(pattern, pa.Scalar):
            known = pattern.is_valid
            return kernel(value, pattern.as_py()) if known else nothing_like(value, pattern)
        result = [
            None if item is None or mark is None else kernel(pa.scalar(item), mark).as_py()
            for item, mark in zip(_listed(value, len(pattern)), pattern.to_pylist(), strict=True)
        ]
        return pa.array(result, pa.bool_())

    return call


def _listed(value: Value, records: int) -> list[Any]:
    return [value.as_py()] * records if isinstance(value, pa.Scalar) else value.to_pylist()


def _substring(value: Value, first: Value, length: Value | None = None) -> Value:
    given = (value, first) if length is None else (value, first, length)
    if all(isinstance(argument, pa.Scalar) and argument.is_valid for argument in given[1:]):
        begin = min(max(0, first.as_py() - 1), _LONGEST_TEXT)
        stop = None if length is None else max(begin, begin + min(length.as_py(), _LONGEST_TEXT))
        return pc.utf8_slice_codeunits(value, begin, stop)
    records = next((len(argument) for argument in given if not isinstance(argument, pa.Scalar)), 1)
    rows = zip(*(_listed(item, records) for item in given), strict=True)
    result = pa.array([None if None in row else _part(*row) for row in rows], pa.string())
    return result[0] if all(isinstance(element, pa.Scalar) for element in given) else result


def _part(text: str, first: int, size: int | None = None) -> str:
    begin = max(0, first - 1)
    return text[begin:] if size is None else text[begin : max(begin, begin + size)]


TEXTS: Final[dict[str, Kernel]] = {
    "like": _text_test(pc.match_like),
    "lower": pc.utf8_lower,
    "upper": pc.utf8_upper,
    "length": pc.utf8_length,
    "trim": pc.utf8_trim_whitespace,
    "substr": _substring,
    "concat": lambda *texts: pc.binary_join_element_wise(*texts, ""),
    "starts_with": _text_test(pc.starts_with),
    "contains": _text_test(pc.match_substring),
}
KERNELS: Final[dict[str, Callable[..., Value]]] = {
    **ARITHMETIC,
    **COMPARISONS,
    **_LOGIC,
    **CONVERSIONS,
    **TEXTS,
    **_TIMES,
}
