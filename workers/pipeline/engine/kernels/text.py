"""Functions of texts: compared and taken as given, character by character (code points)."""

from typing import Any, Final

from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.kernels.types import Kernel, Value, nothing_like


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
        begin = max(0, first.as_py() - 1)
        stop = None if length is None else max(begin, begin + length.as_py())
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
