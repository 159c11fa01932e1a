"""The kernel of each function and operator on Arrow columns.

The result for null is null, but for exceptions in `functions.py` of the language. An undefined
result (a division by 0, the root of a negative number) is null too. A result that does not fit into
its type raises `pyarrow.ArrowInvalid`: nothing wraps. NaN equals NaN and is greater than every
other number, and -0.0 equals 0.0, in comparisons, order, keys and hashes.
"""

from collections.abc import Callable
from typing import Final

from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.kernels.arithmetic import ARITHMETIC
from workers.pipeline.engine.kernels.comparison import COMPARISONS
from workers.pipeline.engine.kernels.conversion import CONVERSIONS, ROUNDING
from workers.pipeline.engine.kernels.text import TEXTS
from workers.pipeline.engine.kernels.types import Value

_LOGIC: Final[dict[str, Callable[..., Value]]] = {
    "and": lambda left, right: pc.and_kleene(left.cast(pa.bool_()), right.cast(pa.bool_())),
    "or": lambda left, right: pc.or_kleene(left.cast(pa.bool_()), right.cast(pa.bool_())),
    "not": lambda value: pc.invert(value.cast(pa.bool_())),
    "is null": pc.is_null,
}
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

KERNELS: Final[dict[str, Callable[..., Value]]] = {
    **ARITHMETIC,
    **COMPARISONS,
    **_LOGIC,
    **ROUNDING,
    **CONVERSIONS,
    **TEXTS,
    **_TIMES,
}

__all__ = ["KERNELS", "Value"]
