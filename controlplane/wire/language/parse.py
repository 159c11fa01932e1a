"""Text to expression: parsed by sqlglot, then checked and typed node by node.

The text is never executed. Each node of its tree, each argument of a node and each token that
nothing here reads is rejected with its place.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeVar

from sqlglot import exp

from controlplane.wire.language.functions import FUNCTIONS, OPERATORS, Function
from controlplane.wire.language.grammar import (
    CASTS,
    TOO_DEEP,
    BadExpression,
    Syntax,
    syntax_of,
    with_advice,
)
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

# Readers of expressions are recursive; brackets alone are not a level.
DEEPEST: Final = 100

_BINARY: Final[Mapping[type[exp.Expr], str]] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.And: "and", exp.Or: "or", exp.Pow: "power", exp.DPipe: "concat",
}  # fmt: skip
_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=", "in")
# Precision and scale of a decimal: none, or the only ones.
_DECIMALS: Final[tuple[list[str], ...]] = ([], ["38", "9"])

T = TypeVar("T")


def parsed(text: str, columns: Mapping[str, Kind]) -> Expression:
    """Return the expression that a text is over these columns. Raises `BadExpression`."""
    return read_text(text, columns, Checker.expression)


def read_text(
    text: str, columns: Mapping[str, Kind], read: "Callable[[Checker, exp.Expr], T]"
) -> T:
    """Return what `read` makes of all of a text's tree. Raises `BadExpression`."""
    try:
        syntax = syntax_of(text)
        checker = Checker(text, columns)
        result = read(checker, syntax.tree)
        checker.require_all_read(syntax)
    except BadExpression as error:
        raise with_advice(error, columns) from None
    return result


class Checker:
    """Turns sqlglot's nodes over the columns of one stream into expressions."""

    def __init__(self, text: str, columns: Mapping[str, Kind]) -> None:
        self.text = text
        self.columns = columns
        self._depth = 0
        self._all_read: set[int] = set()

    def expression(self, node: exp.Expr) -> Expression:
        """Return the expression of a node. Raises `BadExpression` if the node is not supported."""
        while isinstance(node, exp.Paren):
            (node,) = self.arguments(node, "this")
        if self._depth == DEEPEST:
            raise self.bad(node, TOO_DEEP)
        self._depth += 1
        try:
            return self._read(node)
        except RecursionError:
            # The stack is nearly full: reported at the first level with enough room.
            raise self.bad(node, TOO_DEEP) from None
        finally:
            self._depth -= 1

    def _read(self, node: exp.Expr) -> Expression:
        reader = _READERS.get(type(node))
        if reader is None:
            raise self.bad(node, f"{_word(node)} is not part of the language")
        return reader(self, node)

    def arguments(self, node: exp.Expr, *names: str) -> list[Any]:
        """Return these arguments of a node, by which it is read. Raises `BadExpression` for others.

        An argument that is not given is None or False.
        """
        for name, value in node.args.items():
            if name not in names and value not in (None, False, []):
                part = value[0] if isinstance(value, list) else value
                why = f"{_word(node)} with {name.strip('_')} is not part of the language"
                raise self.bad(part if isinstance(part, exp.Expr) else node, why)
        self._all_read.add(id(node))
        return [node.args.get(name) for name in names]

    def require_all_read(self, syntax: Syntax) -> None:
        """Raise `BadExpression` if a node or token of the text was not read."""
        for number in syntax.nodes.keys() - self._all_read:
            node = syntax.nodes[number]
            raise self.bad(node, f"{_word(node)} is not expected here")
        if syntax.unread is not None:
            raise BadExpression(self.text, *syntax.unread)

    def call(self, name: str, node: exp.Expr, *arguments: Any) -> Expression:
        """Return a call of an operator or function, its arguments checked and fitted."""
        return self.typed(name, node, list(map(self.expression, arguments)))

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
        return BadExpression.at_node(self.text, node, why)

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


def _binary(checker: Checker, node: exp.Expr) -> Expression:
    return checker.call(_BINARY[type(node)], node, *checker.arguments(node, "this", "expression"))


def _comparison(checker: Checker, node: exp.Expr) -> Expression:
    if any(_READERS.get(type(side)) is _comparison for side in node.iter_expressions()):
        raise checker.bad(node, "comparisons form no chain; connect them with and, or use brackets")
    return _binary(checker, node)


def _like(checker: Checker, node: exp.Expr) -> Expression:
    this, pattern, negate = checker.arguments(node, "this", "expression", "negate")
    result = checker.call("like", node, this, pattern)
    return checker.typed("not", node, [result]) if negate else result


def _column(checker: Checker, node: exp.Expr) -> Expression:
    name = ".".join(_names(checker, node))
    if name in checker.columns:
        return Column(name, checker.columns[name])
    if "." in name and not any("." in known for known in checker.columns):
        raise checker.bad(node, "columns have no table before them")
    raise checker.bad(node, no_column(name, checker.columns))


def _names(checker: Checker, node: exp.Expr) -> list[str]:
    """Return the names in a column's name from left to right; quotes do not change a name."""
    if isinstance(node, exp.Identifier):
        return checker.arguments(node, "this", "quoted")[:1]
    if not isinstance(node, exp.Column | exp.Dot):
        raise checker.bad(node, f"{_word(node)} is not a part of a column's name")
    parts = checker.arguments(node, "catalog", "db", "table", "this", "expression")
    return [name for part in parts if part is not None for name in _names(checker, part)]


def no_column(name: str, columns: Iterable[str]) -> str:
    """Return the message for an unknown column; in a join each column names its side."""
    known = list(columns)
    meant = [item for item in known if item.partition(".")[2] == name]
    if meant:
        return f"in a join a column names its side: {' or '.join(meant)}"
    return f"there is no column {name}; there are {', '.join(known)}"


def _literal(checker: Checker, node: exp.Expr) -> Expression:
    text, is_text = checker.arguments(node, "this", "is_string")
    if is_text:
        return Literal(text, Kind.TEXT)
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
    (this,) = checker.arguments(node, "this")
    if this == exp.Literal.number(2**63):
        checker.arguments(this, "this")
        return Literal(-(2**63), Kind.INT)
    inner = checker.expression(this)
    if isinstance(inner, Literal) and inner.kind in NUMBERS and inner.value != -(2**63):
        if isinstance(inner.value, Decimal):  # its minus rounds to the context's digits
            return Literal(inner.value.copy_negate(), inner.kind)
        assert isinstance(inner.value, int | float)
        return Literal(-inner.value, inner.kind)
    return checker.typed("negative", node, [inner])


def _case(checker: Checker, node: exp.Expr) -> Expression:
    this, branches, default = checker.arguments(node, "this", "ifs", "default")
    given: list[Expression] = []
    for branch in branches:
        when, then = checker.arguments(branch, "this", "true")
        condition = checker.expression(when)
        if this is not None:
            condition = checker.typed("=", branch, [checker.expression(this), condition])
        given += [condition, checker.expression(then)]
    given.append(Literal(None, Kind.NULL) if default is None else checker.expression(default))
    return checker.typed("case", node, given)


def _cast(checker: Checker, node: exp.Expr) -> Expression:
    this, to = checker.arguments(node, "this", "to")
    wanted = getattr(to.this, "name", str(to.this))
    if wanted not in CASTS:
        there = "int, float, decimal, text, date or timestamp"
        raise checker.bad(node, f"casts go to {there}, not {wanted.lower()}")
    name, kind = CASTS[wanted]
    if kind is Kind.DECIMAL:
        _check_precision(checker, node, to)
    else:
        checker.arguments(to, "this")
    inner = checker.expression(this)
    if isinstance(inner, Literal) and inner.kind is Kind.TEXT and kind is not Kind.TEXT:
        return checker.constant(inner, kind, node)
    return checker.typed(name, node, [inner])


def _check_precision(checker: Checker, node: exp.Expr, to: exp.Expr) -> None:
    _, parameters = checker.arguments(to, "this", "expressions")
    digits = [checker.arguments(parameter, "this")[0] for parameter in parameters or ()]
    if [checker.arguments(item, "this")[0] for item in digits] not in _DECIMALS:
        raise checker.bad(node, "a decimal always has 38 digits, 9 of them after the point; "
                                "round(x, 2) rounds it")  # fmt: skip


def _in(checker: Checker, node: exp.Expr) -> Expression:
    if not node.expressions:
        raise checker.bad(node, "in takes a list of constants")
    this, options = checker.arguments(node, "this", "expressions")
    result = checker.call("in", node, this, *options)
    assert isinstance(result, Call)
    if not all(isinstance(argument, Literal) for argument in result.arguments[1:]):
        raise checker.bad(node, "in takes constants only")
    return result


def _between(checker: Checker, node: exp.Expr) -> Expression:
    this, low, high = checker.arguments(node, "this", "low", "high")
    lower, upper = checker.call(">=", node, this, low), checker.call("<=", node, this, high)
    return checker.typed("and", node, [lower, upper])


def _is(checker: Checker, node: exp.Expr) -> Expression:
    this, what = checker.arguments(node, "this", "expression")
    if not isinstance(what, exp.Null | exp.Boolean):
        raise checker.bad(node, "is takes null, true or false")
    value, wanted = checker.expression(this), checker.expression(what)
    assert isinstance(wanted, Literal)
    if wanted.value is None:
        return checker.typed("is null", node, [value])
    # Unknown is neither: it counts as the opposite.
    known = checker.typed("coalesce", node, [value, Literal(not wanted.value, Kind.BOOL)])
    return checker.typed("=", node, [known, wanted])


def _call(checker: Checker, node: exp.Expr) -> Expression:
    name, arguments = checker.arguments(node, "this", "expressions")
    return checker.call(str(name).lower(), node, *arguments or ())


_READERS: Final[Mapping[type[exp.Expr], Callable[[Checker, Any], Expression]]] = {
    **dict.fromkeys(_BINARY, _binary),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _comparison),
    exp.Like: _like,
    exp.Column: _column,
    exp.Dot: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda checker, node: Literal(checker.arguments(node, "this")[0], Kind.BOOL),
    exp.Null: lambda checker, node: Literal(checker.arguments(node, "this")[0], Kind.NULL),
    exp.Neg: _negative,
    exp.Not: lambda checker, node: checker.call("not", node, *checker.arguments(node, "this")),
    exp.Case: _case,
    exp.Cast: _cast,
    exp.In: _in,
    exp.Between: _between,
    exp.Is: _is,
    exp.Anonymous: _call,
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
        exp.DataType: "a type",
        exp.Paren: "a bracket",
        exp.Concat: "a text beside a text",
        exp.Anonymous: "a call",
    }
    return words.get(type(node), type(node).__name__.lower())
