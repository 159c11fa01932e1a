"""Comparisons and choices: NaN equals NaN and is greater than every other number."""

from typing import Final

from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.kernels.types import (
    Kernel,
    Value,
    canonical,
    group_alike,
    has_nan,
    is_float,
    nothing_like,
    widened,
)


def _comparison(kernel: Kernel, of_floats: Kernel) -> Kernel:
    def compare(left: Value, right: Value) -> Value:
        if pa.types.is_null(left.type) or pa.types.is_null(right.type):
            return nothing_like(left, right)
        item, other = group_alike(left, right)
        return of_floats(item, other) if is_float(item) else kernel(item, other)

    return compare


def _equal(left: Value, right: Value) -> Value:
    result = pc.equal(left, right)
    if not _may_be_nan(left, right):
        return result
    return pc.or_(result, pc.and_(pc.is_nan(left), pc.is_nan(right)))


def _less(left: Value, right: Value) -> Value:
    """Compare floats; a constant number on the right needs no check for NaN."""
    result = pc.less(left, right)
    if isinstance(right, pa.Scalar) and not has_nan(right):
        return result
    if isinstance(left, pa.Scalar) and not has_nan(left):
        # `less` ignores a NaN on the right, for which this is false.
        return pc.invert(pc.less_equal(right, left))
    return pc.or_(result, pc.and_(pc.is_nan(right), pc.invert(pc.is_nan(left))))


def _may_be_nan(left: Value, right: Value) -> bool:
    """Return whether a pair may be NaN on both sides."""
    return not any(isinstance(item, pa.Scalar) and not has_nan(item) for item in (left, right))


def _among(value: Value, *options: Value) -> Value:
    """Return whether a value is one of the constants: null for null, as a comparison would be."""
    single, *others = (canonical(item) for item in group_alike(value, *options))
    known = [option.as_py() for option in others if option.is_valid]
    result = pc.is_in(single, value_set=pa.array(known, single.type))
    unknown = pa.scalar(None, pa.bool_())
    if len(known) < len(options):
        result = pc.if_else(result, result, unknown)
    return pc.if_else(pc.is_valid(single), result, unknown)


def _comparable(kernel: Kernel) -> Kernel:
    """Return a kernel that compares whole numbers as one that compares times and truths, too."""

    def call(left: Value, right: Value) -> Value:
        kind = left.type
        between = pa.int64() if pa.types.is_timestamp(kind) else pa.uint8()
        if pa.types.is_timestamp(kind) or pa.types.is_boolean(kind):
            return kernel(left.cast(between), right.cast(between)).cast(kind)
        return kernel(left, right)

    return call


def _larger(left: Value, right: Value) -> Value:
    result = pc.max_element_wise(left, right)
    for item in (left, right):
        if has_nan(item):
            result = pc.if_else(pc.fill_null(pc.is_nan(item), fill_value=False), item, result)
    return result


def _null_where_equal(left: Value, right: Value) -> Value:
    same = pc.fill_null(COMPARISONS["="](left, right), fill_value=False)
    return pc.if_else(same, pa.scalar(None, left.type), left)


def _case(*given: Value) -> Value:
    result = given[-1]
    for index in range(len(given) - 3, -1, -2):
        condition = pc.fill_null(given[index].cast(pa.bool_()), fill_value=False)
        result = pc.if_else(condition, *group_alike(given[index + 1], result))
    return result


COMPARISONS: Final[dict[str, Kernel]] = {
    "=": _comparison(pc.equal, _equal),
    "<>": _comparison(pc.not_equal, lambda left, right: pc.invert(_equal(left, right))),
    "<": _comparison(pc.less, _less),
    "<=": _comparison(pc.less_equal, lambda left, right: pc.invert(_less(right, left))),
    ">": _comparison(pc.greater, lambda left, right: _less(right, left)),
    ">=": _comparison(pc.greater_equal, lambda left, right: pc.invert(_less(left, right))),
    "in": _among,
    "case": _case,
    "greatest": widened(_comparable(_larger)),
    "least": widened(_comparable(pc.min_element_wise)),
    "coalesce": widened(pc.coalesce),
    "nullif": _null_where_equal,
}
