"""Expressions as DuckDB's own parser reads them, for a comparison with the parser of the language.

Each part of DuckDB's tree is read or is an `Unread`: an expression with a part that has no meaning
here must be one that the language rejects.
"""

import json
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final

import duckdb

from controlplane.wire.language.functions import FUNCTIONS, OPERATORS
from controlplane.wire.language.tree import Call, Column, Expression, Kind, Literal, literal_of

# What DuckDB's tree has beside the expression itself.
_PLACES: Final = ("query_location", "query_location_length", "alias", "qualified_name", "class")
_COMPARED: Final = {
    "COMPARE_EQUAL": "=", "COMPARE_NOTEQUAL": "<>", "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=", "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
}  # fmt: skip
_CASTS: Final = {
    "INTEGER": Kind.INT, "BIGINT": Kind.INT, "DOUBLE": Kind.FLOAT, "FLOAT": Kind.FLOAT,
    "DECIMAL": Kind.DECIMAL, "VARCHAR": Kind.TEXT, "DATE": Kind.DATE, "TIMESTAMP": Kind.TIME,
}  # fmt: skip
_ALIASES: Final = {"text": "VARCHAR", "int": "INTEGER", "bigint": "BIGINT", "float": "FLOAT"}
_NAMED: Final = {"^": "power", "**": "power", "||": "concat", "~~": "like"}


class Unread(Exception):
    """A part of DuckDB's tree has no meaning in the language."""


class Parts:
    """The parts of a node, each to be taken."""

    def __init__(self, node: Mapping[str, Any]) -> None:
        self._left = {name: value for name, value in node.items() if name not in _PLACES and value}

    def take(self, name: str, default: Any = None) -> Any:
        """Return a part, which is read by that."""
        return self._left.pop(name, default)

    def require_all_taken(self) -> None:
        """Raise `Unread` if a part was not taken."""
        orders = self._left.get("order_bys")
        if orders is not None and not orders.get("orders"):
            del self._left["order_bys"]
        if self._left:
            raise Unread(self._left)


class Reader:
    """Reads texts over columns of these kinds."""

    def __init__(self, client: duckdb.DuckDBPyConnection, columns: Mapping[str, Kind]) -> None:
        self._client = client
        self._columns = columns

    def expression(self, text: str) -> Expression:
        """Return the expression. Raises `Unread`, also for what DuckDB cannot parse."""
        (row,) = self._client.execute("SELECT json_serialize_sql(?)", [f"SELECT {text}"]).fetchall()
        result = json.loads(row[0])
        if result["error"]:
            raise Unread(result["error_message"])
        (statement,) = result["statements"]
        (node,) = statement["node"]["select_list"]
        return self._read(node)

    def _read(self, node: Mapping[str, Any]) -> Expression:
        parts = Parts(node)
        name = parts.take("type")
        if name in _COMPARED:
            sides = [self._read(parts.take(side)) for side in ("left", "right")]
            result: Expression = self._call(_COMPARED[name], sides)
        elif name in _READERS:
            result = _READERS[name](self, parts)
        else:
            raise Unread(name)
        parts.require_all_taken()
        return result

    def _call(self, name: str, given: list[Expression]) -> Call:
        if name in (*_COMPARED.values(), "in"):
            kinds = {one.kind for one in given} & {Kind.TIME, Kind.DATE}
            given = [literal_of(str(one.value), *kinds)
                     if len(kinds) == 1 and isinstance(one, Literal) and one.kind is Kind.TEXT
                     else one for one in given]  # fmt: skip
        function = OPERATORS.get(name) or FUNCTIONS.get(name)
        kind = function.gives([one.kind for one in given]) if function else None
        if kind is None:
            raise Unread(name)
        return Call(name, tuple(given), kind)

    def _all(self, nodes: Any) -> list[Expression]:
        return [self._read(node) for node in nodes or ()]

    def _constant(self, parts: Parts) -> Expression:
        literal = Parts(parts.take("literal", {}))
        kind, text = literal.take("kind"), literal.take("text", "")
        literal.require_all_taken()
        match kind:
            case "INTEGER":
                return Literal(int(text), Kind.INT)
            case "NUMERIC":
                return Literal(float(text), Kind.FLOAT)
            case "STRING":
                return Literal(text, Kind.TEXT)
            case "BOOLEAN":
                return Literal(text == "true", Kind.BOOL)
            case "NULL_LITERAL":
                return Literal(None, Kind.NULL)
        raise Unread(kind)

    def _column(self, parts: Parts) -> Expression:
        name = ".".join(parts.take("column_names"))
        return Column(name, self._columns[name])

    def _function(self, parts: Parts) -> Expression:
        name = parts.take("function_name")
        is_operator = parts.take("is_operator")
        given = []
        for argument in parts.take("arguments", ()):
            part = Parts(argument)
            given.append(self._read(part.take("expression")))
            part.require_all_taken()
        if name == "!~~":
            return self._call("not", [self._call("like", given)])
        if is_operator and len(given) == 1:
            return given[0] if name == "+" else self._call("negative", given)
        return self._call(_NAMED.get(name, name), given)

    def _between(self, parts: Parts) -> Expression:
        value, low, high = (self._read(parts.take(name)) for name in ("input", "lower", "upper"))
        return self._call("and", [self._call(">=", [value, low]), self._call("<=", [value, high])])

    def _connected(self, name: str, parts: Parts) -> Expression:
        return reduce(lambda left, right: self._call(name, [left, right]),
                      self._all(parts.take("children")))  # fmt: skip

    def _distinct(self, parts: Parts, *, is_same: bool) -> Expression:
        """Read `x is [not] true`, which DuckDB writes as a cast and a comparison of all values."""
        cast, wanted = parts.take("left"), self._read(parts.take("right"))
        if cast["type"] != "OPERATOR_CAST" or not isinstance(wanted, Literal):
            raise Unread("is distinct from")
        value = self._read(cast["child"])
        known = self._call("coalesce", [value, Literal(not wanted.value, Kind.BOOL)])
        result = self._call("=", [known, wanted])
        return result if is_same else self._call("not", [result])

    def _case(self, parts: Parts) -> Expression:
        given = []
        for check in parts.take("case_checks"):
            part = Parts(check)
            given += [self._read(part.take("when_expr")), self._read(part.take("then_expr"))]
            part.require_all_taken()
        return self._call("case", [*given, self._read(parts.take("else_expr"))])

    def _cast(self, parts: Parts) -> Expression:
        value, wanted = self._read(parts.take("child")), Parts(parts.take("type_expr"))
        wanted.take("type")
        name = wanted.take("type_name")
        if name.upper() == "DECIMAL":
            digits = [one["literal"]["text"] for one in wanted.take("children", ())]
            if digits not in ([], ["38", "9"]):
                raise Unread(digits)
        wanted.require_all_taken()
        kind = _CASTS.get(_ALIASES.get(name.lower(), name.upper()))
        if kind is None:
            raise Unread(name)
        if isinstance(value, Literal) and value.kind is Kind.TEXT and kind is not Kind.TEXT:
            return literal_of(str(value.value), kind)
        return self._call(f"to {kind}", [value])


_READERS: Final[Mapping[str, Callable[[Reader, Parts], Expression]]] = {
    "VALUE_CONSTANT": Reader._constant,
    "COLUMN_REF": Reader._column,
    "FUNCTION": Reader._function,
    "COMPARE_BETWEEN": Reader._between,
    "COMPARE_IN": lambda self, parts: self._call("in", self._all(parts.take("children"))),
    "CONJUNCTION_AND": lambda self, parts: self._connected("and", parts),
    "CONJUNCTION_OR": lambda self, parts: self._connected("or", parts),
    "OPERATOR_NOT": lambda self, parts: self._call("not", self._all(parts.take("children"))),
    "OPERATOR_IS_NULL": lambda self, parts: self._call(
        "is null", self._all(parts.take("children"))
    ),
    "OPERATOR_IS_NOT_NULL": lambda self, parts: self._call(
        "not", [self._call("is null", self._all(parts.take("children")))]
    ),
    "OPERATOR_COALESCE": lambda self, parts: self._call(
        "coalesce", self._all(parts.take("children"))
    ),
    "COMPARE_DISTINCT_FROM": lambda self, parts: self._distinct(parts, is_same=False),
    "COMPARE_NOT_DISTINCT_FROM": lambda self, parts: self._distinct(parts, is_same=True),
    "OPERATOR_CAST": Reader._cast,
    "CASE_EXPR": Reader._case,
}
