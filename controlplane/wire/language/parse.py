"""Text to expression: parsed by sqlglot, then checked and typed node by node.

The text is never executed; a part that is not in the tables below is rejected with its place.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from sqlglot import ErrorLevel, exp, parse_one
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError

from controlplane.wire.language.errors import BadExpression
from controlplane.wire.language.functions import FUNCTIONS, OPERATORS, Function
from controlplane.wire.language.registered import names, registered
from controlplane.wire.language.tree import (
    NUMBERS,
    Call,
    Column,
    Expression,
    Kind,
    Literal,
    literal_of,
)

LONGEST: Final = 4_000
# Readers of expressions are recursive; brackets alone are no level.
DEEPEST: Final = 100
_TOO_DEEP: Final = "is nested too deeply"

_BINARY: Final[Mapping[type[exp.Expr], str]] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.And: "and", exp.Or: "or", exp.Like: "like",
}  # fmt: skip
_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=", "in")
_CASTS: Final = {
    "INT": ("to int", Kind.INT), "BIGINT": ("to int", Kind.INT),
    "DOUBLE": ("to float", Kind.FLOAT), "FLOAT": ("to float", Kind.FLOAT),
    "DECIMAL": ("to decimal", Kind.DECIMAL),
    "TEXT": ("to text", Kind.TEXT), "VARCHAR": ("to text", Kind.TEXT),
    "DATE": ("to date", Kind.DATE),
    "TIMESTAMP": ("to time", Kind.TIME), "TIMESTAMPTZ": ("to time", Kind.TIME),
    "TIMESTAMPNTZ": ("to time", Kind.TIME),
}  # fmt: skip
# Precision and scale of a decimal: none, the only ones, and sqlglot's default.
_DECIMALS: Final[tuple[list[str], ...]] = ([], ["38", "9"], ["18", "3"])
_CALLED: Final[Mapping[type[exp.Expr], str]] = {
    exp.Pow: "power",
    exp.DPipe: "concat",
    exp.Concat: "concat",
}


class _Dialect(DuckDB):
    """DuckDB's grammar with all calls alike: the tables of this package have the functions."""

    class Parser(DuckDB.Parser):  # type: ignore[misc, valid-type]
        """Keeps the grammar of CASE and CAST; all others are calls by name."""

        FUNCTIONS: Mapping[str, Any] = {}
        NO_PAREN_FUNCTIONS: Mapping[Any, Any] = {}
        NO_PAREN_FUNCTION_PARSERS = {"CASE": DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
        FUNCTION_PARSERS = {"CAST": DuckDB.Parser.FUNCTION_PARSERS["CAST"]}


def parsed(text: str, columns: Mapping[str, Kind]) -> Expression:
    """Return the expression that a text is over these columns. Raises `BadExpression`."""
    return Checker(text, columns).expression(tree_of(text))


@lru_cache(maxsize=4096)
def tree_of(text: str) -> exp.Expr:
    """Return sqlglot's tree of a text, which is shared. Raises `BadExpression`.

    Parsing takes most of the check of a query, and queries of one bulk share their texts.
    """
    if len(text) > LONGEST:
        raise BadExpression(text, f"has {len(text):,} characters, {LONGEST:,} are allowed", LONGEST)
    if not text.strip():
        raise BadExpression(text, "is empty")
    try:
        tree: exp.Expr = parse_one(text, dialect=_Dialect, error_level=ErrorLevel.RAISE)
    except ParseError as error:
        raise _misread(text, error) from None
    except TokenError:
        raise BadExpression(text, "ends within a text or comment", 0) from None
    except RecursionError:
        raise BadExpression(text, _TOO_DEEP, _innermost(text)) from None
    return tree


def _innermost(text: str) -> int:
    """Return where the innermost bracket opens, 0 without one."""
    depth = deepest = result = 0
    for index, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth > deepest:
            deepest, result = depth, index
    return result


def _misread(text: str, error: ParseError) -> BadExpression:
    if not error.errors:
        return BadExpression(text, "is not an expression")
    first = error.errors[0]
    line, column, word = int(first["line"]), int(first["col"]), str(first["highlight"])
    lines = text.split("\n")
    end = sum(len(item) + 1 for item in lines[: line - 1]) + column
    why = (
        "something is missing here"
        if first["description"].startswith("Required")
        else (f"{word!r} is not expected here")
    )
    return BadExpression(text, why, end - len(word), end)


class Checker:
    """Turns sqlglot's nodes over the columns of one stream into expressions."""

    def __init__(self, text: str, columns: Mapping[str, Kind]) -> None:
        self.text = text
        self.columns = columns
        self._depth = 0

    def expression(self, node: exp.Expr) -> Expression:
        """Return the expression of a node. Raises `BadExpression` if the node is not supported."""
        while isinstance(node, exp.Paren):
            node = node.this
        if self._depth == DEEPEST:
            raise self.bad(node, _TOO_DEEP)
        self._depth += 1
        try:
            return self._read(node)
        except RecursionError:
            # The stack is nearly full: reported at the first level with enough room.
            raise self.bad(node, _TOO_DEEP) from None
        finally:
            self._depth -= 1

    def _read(self, node: exp.Expr) -> Expression:
        if type(node) in _BINARY:
            return self.call(_BINARY[type(node)], node, node.this, node.expression)
        if type(node) in _CALLED:
            operands = node.expressions or [node.this, node.expression]
            return self.call(_CALLED[type(node)], node, *operands)
        reader = _READERS.get(type(node))
        if reader is None:
            raise self.bad(node, f"{_word(node)} is not part of the language")
        return reader(self, node)

    def call(self, name: str, node: exp.Expr, *arguments: Any) -> Expression:
        """Return a call of an operator or function, its arguments checked and fitted."""
        given = [self.expression(argument) for argument in arguments]
        return self.typed(name, node, given)

    def typed(self, name: str, node: exp.Expr, given: list[Expression]) -> Call:
        """Return the call with its kind. Raises `BadExpression` if an argument does not fit."""
        if name in _COMPARISONS:
            given = self._with_times(node, given)
        function = self._signature(name, node)
        self._check_number(name, function, node, len(given))
        for index, argument in enumerate(given):
            fits = function.takes[min(index, len(function.takes) - 1)]
            if argument.kind is not Kind.NULL and argument.kind not in fits:
                wanted = " or ".join(fits)
                why = f"{name} takes {wanted} here, not {argument.kind}"
                raise self.bad(_argument(node, index), why)
        kinds = [argument.kind for argument in given]
        kind = function.gives(kinds)
        if kind is None:
            raise self.bad(node, f"{name} cannot take {' and '.join(kinds)} together")
        return Call(name, tuple(given), kind)

    def bad(self, node: exp.Expr, why: str) -> BadExpression:
        """Return the error that points at a node."""
        return BadExpression(self.text, why, *_place(self.text, node))

    def _signature(self, name: str, node: exp.Expr) -> Function:
        known = OPERATORS.get(name) or FUNCTIONS.get(name)
        if known is not None:
            return known
        result = registered(name)
        if result is None:
            there = ", ".join([*FUNCTIONS, *names()])
            why = f"there is no function {name}; there are {there}"
            raise BadExpression(self.text, why, node.meta["start"], node.meta["end"] + 1)
        return result.signature

    def _check_number(self, name: str, function: Function, node: exp.Expr, got: int) -> None:
        most = None if function.repeats else len(function.takes)
        if got < function.least or (most is not None and got > most):
            wanted = f"{function.least}" if most == function.least else f"{function.least} or more"
            raise self.bad(node, f"{name} takes {wanted} arguments, not {got}")

    def _with_times(self, node: exp.Expr, given: list[Expression]) -> list[Expression]:
        """Convert texts that are compared with times or dates to constants."""
        kinds = {item.kind for item in given} & {Kind.TIME, Kind.DATE}
        if len(kinds) != 1:
            return given
        (kind,) = kinds
        return [
            self.constant(value, kind, _argument(node, index))
            if isinstance(value, Literal) and value.kind is Kind.TEXT
            else value
            for index, value in enumerate(given)
        ]

    def constant(self, literal: Literal, kind: Kind, node: exp.Expr) -> Literal:
        """Return a text as a constant of a kind. Raises `BadExpression`."""
        try:
            return literal_of(str(literal.value), kind)
        except ValueError as error:
            raise self.bad(node, str(error)) from None


def _column(checker: Checker, node: exp.Expr) -> Expression:
    name = ".".join(part.name for part in parts_of(node))
    if name in checker.columns:
        return Column(name, checker.columns[name])
    if "." in name and not any("." in known for known in checker.columns):
        raise checker.bad(node, "columns have no table before them")
    raise checker.bad(node, no_column(name, checker.columns))


def parts_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the names in a column's name from left to right: a side, a column, fields in it."""
    if isinstance(node, exp.Dot):
        return [*parts_of(node.this), *parts_of(node.expression)]
    return list(node.parts) if isinstance(node, exp.Column) else [node]


def no_column(name: str, columns: Iterable[str]) -> str:
    """Return the message for an unknown column; in a join each column names its side."""
    known = list(columns)
    meant = [item for item in known if item.partition(".")[2] == name]
    if meant:
        return f"in a join a column names its side: {' or '.join(meant)}"
    return f"there is no column {name}; there are {', '.join(known)}"


def _literal(checker: Checker, node: exp.Expr) -> Expression:
    if node.args["is_string"]:
        return Literal(node.name, Kind.TEXT)
    text = node.name
    if any(mark in text for mark in ".eE"):
        return _float(checker, node)
    if not -(2**63) <= int(text) < 2**63:
        raise checker.bad(node, f"is beyond 64 bits; decimal '{text}' has up to 29 digits")
    return Literal(int(text), Kind.INT)


def _float(checker: Checker, node: exp.Expr) -> Literal:
    try:
        number = float(node.name)
    except ValueError:
        raise checker.bad(node, f"{node.name} is not a number") from None
    if math.isinf(number):
        raise checker.bad(node, "is beyond the largest float")
    return Literal(number, Kind.FLOAT)


def _negative(checker: Checker, node: exp.Expr) -> Expression:
    if isinstance(node.this, exp.Literal) and node.this.name == str(2**63):
        return Literal(-(2**63), Kind.INT)
    inner = checker.expression(node.this)
    if isinstance(inner, Literal) and inner.kind in NUMBERS and inner.value != -(2**63):
        assert isinstance(inner.value, int | float | Decimal)
        return Literal(-inner.value, inner.kind)
    return checker.typed("negative", node, [inner])


def _case(checker: Checker, node: exp.Expr) -> Expression:
    given: list[Expression] = []
    for branch in node.args["ifs"]:
        condition = checker.expression(branch.this)
        if node.this is not None:
            condition = checker.typed("=", branch, [checker.expression(node.this), condition])
        given += [condition, checker.expression(branch.args["true"])]
    default = node.args.get("default")
    given.append(Literal(None, Kind.NULL) if default is None else checker.expression(default))
    return checker.typed("case", node, given)


def _cast(checker: Checker, node: exp.Expr) -> Expression:
    wanted = node.args["to"].this.name
    if wanted not in _CASTS:
        there = "int, float, decimal, text, date or timestamp"
        raise checker.bad(node, f"casts go to {there}, not {wanted.lower()}")
    name, kind = _CASTS[wanted]
    if kind is Kind.DECIMAL:
        _check_precision(checker, node)
    inner = checker.expression(node.this)
    if isinstance(inner, Literal) and inner.kind is Kind.TEXT and kind is not Kind.TEXT:
        return checker.constant(inner, kind, node)
    return checker.typed(name, node, [inner])


def _check_precision(checker: Checker, node: exp.Expr) -> None:
    given = [expression.name for expression in node.args["to"].expressions]
    if given not in _DECIMALS:
        raise checker.bad(node, "a decimal always has 38 digits, 9 of them after the point; "
                                "round(x, 2) rounds it")  # fmt: skip


def _in(checker: Checker, node: exp.Expr) -> Expression:
    options = node.args.get("expressions")
    if not options:
        raise checker.bad(node, "in takes a list of constants")
    result = checker.call("in", node, node.this, *options)
    assert isinstance(result, Call)
    if not all(isinstance(argument, Literal) for argument in result.arguments[1:]):
        raise checker.bad(node, "in takes constants only")
    return result


def _between(checker: Checker, node: exp.Expr) -> Expression:
    lower = checker.call(">=", node, node.this, node.args["low"])
    upper = checker.call("<=", node, node.this, node.args["high"])
    return checker.typed("and", node, [lower, upper])


def _is(checker: Checker, node: exp.Expr) -> Expression:
    match node.expression:
        case exp.Null():
            return checker.call("is null", node, node.this)
        case exp.Boolean():
            wanted = bool(node.expression.this)
            # Unknown is neither: it counts as the opposite.
            other = Literal(not wanted, Kind.BOOL)
            known = checker.typed("coalesce", node, [checker.expression(node.this), other])
            return checker.typed("=", node, [known, Literal(wanted, Kind.BOOL)])
    raise checker.bad(node, "is takes null, true or false")


_READERS: Final[Mapping[type[exp.Expr], Callable[[Checker, Any], Expression]]] = {
    exp.Column: _column,
    exp.Dot: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda _, node: Literal(bool(node.this), Kind.BOOL),
    exp.Null: lambda _, __: Literal(None, Kind.NULL),
    exp.Neg: _negative,
    exp.Not: lambda checker, node: checker.call("not", node, node.this),
    exp.Case: _case,
    exp.Cast: _cast,
    exp.In: _in,
    exp.Between: _between,
    exp.Is: _is,
    exp.Anonymous: lambda checker, node: checker.call(
        str(node.this).lower(), node, *node.expressions
    ),
}


def _argument(node: exp.Expr, index: int) -> exp.Expr:
    """Return the node of an argument, to point at."""
    parts = [part for part in node.iter_expressions() if not isinstance(part, exp.DataType)]
    if isinstance(node, exp.Case):
        branches = node.args["ifs"]
        parts = [part for branch in branches for part in (branch.this, branch.args["true"])]
    return parts[index] if index < len(parts) else node


def _word(node: exp.Expr) -> str:
    words: dict[type[exp.Expr], str] = {
        exp.Alias: "a second value",
        exp.Block: "a second statement",
        exp.Star: "*",
        exp.Select: "a select",
        exp.Subquery: "a sub-query",
    }
    return words.get(type(node), type(node).__name__.lower())


def _place(text: str, node: exp.Expr) -> tuple[int, int]:
    """Return the characters that a node and all below it were read from."""
    marks = [below.meta for below in node.walk() if "start" in below.meta]
    if not marks:
        return 0, len(text)
    return min(mark["start"] for mark in marks), max(mark["end"] for mark in marks) + 1
