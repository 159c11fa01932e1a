"""Expressions evaluated over a batch of records, column-wise."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from controlplane.wire.language.registered import registered
from controlplane.wire.language.tree import Call, Column, Expression, Kind, Literal
from controlplane.wire.layout import ARROW
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.faults import users_code
from workers.pipeline.engine.kernels import KERNELS, Value


class Evaluator:
    """Evaluates expressions over one batch; what expressions share is computed once."""

    def __init__(self, columns: Mapping[str, Value], records: int) -> None:
        self._columns = columns
        self._records = records
        self._known: dict[Expression, Value] = {}

    def array(self, expression: Expression) -> Value:
        """Return the value for each record, an array of the expression's kind."""
        found = self._value(expression)
        if isinstance(found, pa.Scalar):
            found = pa.repeat(found, self._records)
        return found

    def _value(self, expression: Expression) -> Value:
        if expression not in self._known:
            self._known[expression] = self._computed(expression)
        return self._known[expression]

    def _computed(self, expression: Expression) -> Value:
        wanted = ARROW[expression.kind]
        match expression:
            case Literal():
                return pa.scalar(expression.value, wanted)
            case Column():
                return self._columns[expression.name].cast(wanted)
            case Call():
                return self._called(expression).cast(wanted)

    def _called(self, call: Call) -> Value:
        kernel = KERNELS.get(call.function)
        if kernel is not None:
            return kernel(*(self._value(one) for one in call.arguments))
        arrays = [self.array(one) for one in call.arguments]
        return _by_python(call, arrays)


def _by_python(call: Call, arrays: list[Value]) -> Value:
    """Call a registered function. Raises `LookupError` where this process has none of the name."""
    found = registered(call.function)
    if found is None:
        raise LookupError(f"no module registers the function {call.function} here")
    valid = np.ones(len(arrays[0]) if arrays else 0, np.bool_)
    for array in arrays:
        valid &= np.asarray(array.is_valid())
    plain = [
        np.asarray(_filled(array, argument.kind))
        for array, argument in zip(arrays, call.arguments, strict=True)
    ]
    with users_code(call.function):
        return _result(found.call(*plain), valid, ARROW[call.kind])


def _result(given: Any, valid: Any, kind: Any) -> Value:
    """Return what a function gave as an array. Raises `ValueError` for another length."""
    values = np.asarray(given)
    if values.shape != valid.shape:
        raise ValueError(f"gave {values.shape} values for {len(valid)} records")
    return pa.array(values, mask=~valid).cast(kind)


def _filled(array: Value, kind: Kind) -> Value:
    if kind is Kind.NULL:
        return pa.array(np.zeros(len(array)))
    nothing: dict[Kind, Any] = {Kind.BOOL: False, Kind.TEXT: ""}
    return array.fill_null(pa.scalar(nothing.get(kind, 0), ARROW[kind]))
