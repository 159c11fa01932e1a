"""Expressions evaluated over a batch of records, column-wise."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.aggregates.layout import ARROW
from controlplane.wire.language.registered import registered
from controlplane.wire.language.tree import Call, Column, Expression, Kind, Literal
from controlplane.wire.records.record_codec import struct_field, whole_ms
from workers.pipeline.engine.arrow import pa, pc
from workers.pipeline.engine.failures.fault import QueryFault, user_code
from workers.pipeline.engine.kernels import KERNELS
from workers.pipeline.engine.kernels.types import Value, floats_of_decimals, has_nan, in_kind

Rows = NDArray[np.int64]

# What has an answer although an argument is the bare word null.
_TAKES_NULL: Final = frozenset(
    ("and", "or", "is null", "in", "case", "coalesce", "greatest", "least", "nullif", "=", "<>",
     "<", "<=", ">", ">=")
)  # fmt: skip


class Evaluator:
    """Evaluates expressions over one batch; what expressions share is computed once.

    Everything is evaluated for all records. Where that raises `QueryFault`, `within` gives an
    evaluator of some records alone, in which a branch that a record does not take is not evaluated
    for it.
    """

    def __init__(
        self, columns: Mapping[str, Value], records: int, *, branches: bool = False
    ) -> None:
        self._columns = columns
        self._records = records
        self._branches = branches
        self._known: dict[Expression, Value | QueryFault] = {}
        self._largest: dict[Expression, int] = {}
        self._nan: dict[Expression, bool] = {}

    def array(self, expression: Expression) -> Value:
        """Return the value for each record, an array of the expression's kind.

        Raises `QueryFault` for a result that does not fit into its kind, and for users' functions
        that fail.
        """
        if self._branches and not self._records:
            # A branch that no record takes is not evaluated at all.
            return pa.array([], ARROW[expression.kind])
        result = self._value(expression)
        if isinstance(result, pa.Scalar):
            result = pa.repeat(result, self._records)
        return result

    def within(self, rows: Rows) -> "Evaluator":
        """Return an evaluator of these records, which evaluates each branch separately."""
        return Evaluator(_Taken(self._columns, pa.array(rows)), len(rows), branches=True)

    def hashable(self, key: Sequence[Expression], where: Expression | None) -> list[Value]:
        """Return the values of a key for each record, to find its task by.

        A record that `where` leaves out may have no value: it is null then. Where a value of a
        selected record cannot be computed, all are null, and the aggregation raises the fault.
        """
        try:
            return [self.array(item) for item in key]
        except QueryFault:
            return self._selected_only(key, where)

    def _selected_only(self, key: Sequence[Expression], where: Expression | None) -> list[Value]:
        everyone = np.arange(self._records)
        try:
            selected = self.within(everyone).array(where) if where is not None else None
            rows = everyone if selected is None else np.flatnonzero(holds(selected))
            some = self.within(rows)
            place = np.full(self._records, -1)
            place[rows] = np.arange(len(rows))
            spread = pa.array(place, mask=place < 0)
            return [some.array(item).take(spread) for item in key]
        except QueryFault:
            return [pa.nulls(self._records, ARROW[value.kind]) for value in key]

    def largest(self, expression: Expression) -> int:
        """Return the largest absolute value of a whole-number expression over all records."""
        if expression not in self._largest:
            result = pc.min_max(self.array(expression))
            least, most = result["min"].as_py() or 0, result["max"].as_py() or 0
            self._largest[expression] = max(-least, most)
        return self._largest[expression]

    def has_nan(self, expression: Expression) -> bool:
        """Return whether the expression is NaN for any record."""
        if expression not in self._nan:
            self._nan[expression] = has_nan(self.array(expression))
        return self._nan[expression]

    def _value(self, expression: Expression) -> Value:
        known = self._known.get(expression)
        if known is None:
            try:
                known = self._computed(expression)
            except QueryFault as fault:
                known = fault
            self._known[expression] = known
        if isinstance(known, QueryFault):
            raise known.with_traceback(None)
        return known

    def _computed(self, expression: Expression) -> Value:
        match expression:
            case Literal():
                return pa.scalar(expression.value, ARROW[expression.kind])
            case Column():
                try:
                    return column_of(self._columns, expression, self._records)
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                    raise _unfit(f"the column {expression.name}", expression.kind, error) from error
            case Call():
                return self._called(expression)

    def _called(self, call: Call) -> Value:
        if call.function not in _TAKES_NULL and any(
            value.kind is Kind.NULL for value in call.arguments
        ):
            return pa.scalar(None, ARROW[call.kind])
        if self._branches and call.function in _BRANCHES:
            return _BRANCHES[call.function](self, call)
        kernel = KERNELS.get(call.function)
        if kernel is None:
            return _by_python(call, [self.array(argument) for argument in call.arguments])
        arguments = [self._value(item) for item in call.arguments]
        try:
            return in_kind(kernel(*arguments), call.kind)
        except pa.ArrowInvalid as error:
            raise _unfit(f"the result of {call.function}", call.kind, error) from error

    def _case(self, call: Call) -> Value:
        parts, left = _Parts(call.kind), np.arange(self._records)
        *branches, default = call.arguments
        for condition, value in zip(branches[::2], branches[1::2], strict=True):
            is_true = holds(self.within(left).array(condition))
            parts.add(self, value, left[is_true])
            left = left[~is_true]
        parts.add(self, default, left)
        return parts.together()

    def _coalesced(self, call: Call) -> Value:
        parts, left = _Parts(call.kind), np.arange(self._records)
        for value in call.arguments:
            there = np.asarray(self.within(left).array(value).is_valid())
            parts.add(self, value, left[there])
            left = left[~there]
        parts.add(self, Literal(None, Kind.NULL), left)
        return parts.together()

    def _connected(self, call: Call) -> Value:
        """Evaluate the right side of `and` and `or` only if the left does not decide."""
        left = self.array(call.arguments[0]).cast(pa.bool_())
        decides = pc.invert(left) if call.function == "and" else left
        open_ = np.flatnonzero(~holds(decides))
        right = self.within(open_).array(call.arguments[1]).cast(pa.bool_())
        spread = np.full(self._records, -1)
        spread[open_] = np.arange(len(open_))
        rest = right.take(pa.array(spread, mask=spread < 0))
        return KERNELS[call.function](left, rest)


_BRANCHES: Final = {
    "case": Evaluator._case,  # noqa: SLF001 - the class's own methods, by name
    "coalesce": Evaluator._coalesced,  # noqa: SLF001
    "and": Evaluator._connected,  # noqa: SLF001
    "or": Evaluator._connected,  # noqa: SLF001
}


class _Parts:
    """Values of some records each, combined to those of all."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._arrays: list[Any] = []
        self._rows: list[Rows] = []

    def add(self, evaluator: Evaluator, expression: Expression, rows: Rows) -> None:
        """Evaluate an expression for these records."""
        self._arrays.append(in_kind(evaluator.within(rows).array(expression), self._kind))
        self._rows.append(rows)

    def together(self) -> Value:
        """Return the values in the order of the records."""
        order = np.argsort(np.concatenate(self._rows), kind="stable")
        return pa.concat_arrays(self._arrays).take(pa.array(order))


class _Taken(Mapping[str, Any]):
    """The columns of some records; a column is cut when it is requested."""

    def __init__(self, columns: Mapping[str, Any], rows: Any) -> None:
        self._whole = columns
        self._rows = rows

    def __getitem__(self, name: str) -> Any:
        return self._whole[name].take(self._rows)

    def __iter__(self) -> Any:
        return iter(self._whole)

    def __len__(self) -> int:
        return len(self._whole)


def holds(condition: Value) -> NDArray[np.bool_]:
    """Return for which records a condition is true; null counts as false."""
    return np.asarray(pc.fill_null(condition.cast(pa.bool_()), fill_value=False))


def _unfit(what: str, kind: Kind, error: Exception) -> QueryFault:
    why = str(error).strip().rstrip(".")
    return QueryFault(
        f"{what} does not fit into {kind} ({why}): compute with decimal or float, or leave such "
        "records out with a condition"
    )


def _by_python(call: Call, arrays: list[Value]) -> Value:
    """Call a registered function. Raises `LookupError` if this process does not have it."""
    result = registered(call.function)
    if result is None:
        raise LookupError(f"no module registers the function {call.function} here")
    valid = np.ones(len(arrays[0]) if arrays else 0, np.bool_)
    for array in arrays:
        valid &= np.asarray(array.is_valid())
    plain = [
        np.asarray(_filled(in_kind(array, kinds[0]), kinds[0]))
        for array, kinds in zip(arrays, result.signature.takes, strict=True)
    ]
    with user_code(call.function):
        return _result(result.call(*plain), valid, ARROW[call.kind])


def _result(given: Any, valid: Any, kind: Any) -> Value:
    """Return the result of a function as an array. Raises `ValueError` for another length."""
    values = np.asarray(given)
    if values.shape != valid.shape:
        raise ValueError(f"gave {values.shape} values for {len(valid)} records")
    return pa.array(values, mask=~valid).cast(kind)


def _filled(array: Value, kind: Kind) -> Value:
    nothing: dict[Kind, Any] = {Kind.BOOL: False, Kind.TEXT: ""}
    return array.fill_null(pa.scalar(nothing.get(kind, 0), ARROW[kind]))


def column_of(columns: Mapping[str, Any], wanted: Column, records: int) -> Any:
    """Return a column, or a field of a struct by `column.field`, as an array of its kind.

    A column that records of an older schema do not have is null. Raises `ArrowInvalid` for a value
    that does not fit into the kind.
    """
    result = _named(columns, wanted.name)
    if result is None:
        return pa.nulls(records, ARROW[wanted.kind])
    return as_kind(result, wanted.kind)


def _named(columns: Mapping[str, Any], name: str) -> Any:
    if name in columns:
        return columns[name]
    whole, *path = name.split(".")
    return struct_field(columns[whole], path) if whole in columns else None


def as_kind(column: Any, kind: Kind) -> Any:
    """Return a column of the log as an array of a kind; times are cut to whole milliseconds."""
    wanted = ARROW[kind]
    if column.type == wanted:
        return column
    if pa.types.is_timestamp(column.type) and column.type.unit in ("us", "ns"):
        return whole_ms(column).cast(wanted)
    if kind is Kind.FLOAT and pa.types.is_decimal(column.type):
        return floats_of_decimals(column.cast(ARROW[Kind.DECIMAL]))
    # Whole numbers beyond 2 ** 53 become the nearest float.
    return column.cast(wanted, safe=kind is not Kind.FLOAT)
