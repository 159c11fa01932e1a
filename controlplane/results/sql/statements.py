"""Statements of users over the views of a cluster: one SELECT of parts that are known as harmless.

What runs is not the text but the tree that was checked: its tables are views of the cluster, and
every node and function is one of this module's lists.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from controlplane.errors import Invalid
from controlplane.models import Cluster
from controlplane.results.sql.views import ResultView, schema_of, view_names, views_of
from controlplane.wire.language.errors import Fault, reworded
from controlplane.wire.language.grammar import BadExpression

LONGEST: Final = 6_000
# Parts of a statement, and tables in it, which may be views several times.
_MOST_PARTS: Final = 2_000
_MOST_TABLES: Final = 16
# Names that a message lists.
_LISTED: Final = 5
# The longest text that `||` and the like make, so that repetition does not fill the memory.
_LONGEST_TEXT: Final = 10_000
_DIALECT: Final = Postgres()
# Of a table of WITH, so that it is never that of the database.
_WITH: Final = "with "
_BEGINNINGS: Final = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)
_SELECT_ONLY: Final = "only SELECT is possible: results are read here, not changed"
_FUNCTIONS: Final = (
    exp.Abs, exp.Avg, exp.Case, exp.Cast, exp.Ceil, exp.Coalesce, exp.Count, exp.CumeDist,
    exp.CurrentDate, exp.CurrentTimestamp, exp.DenseRank, exp.Exp, exp.Extract, exp.FirstValue,
    exp.Floor, exp.Greatest, exp.If, exp.Lag, exp.LastValue, exp.Lead, exp.Least, exp.Left,
    exp.Length, exp.Ln, exp.Log, exp.LogicalAnd, exp.LogicalOr, exp.Lower, exp.Max, exp.Min,
    exp.NthValue, exp.Ntile, exp.Nullif, exp.PercentileCont, exp.PercentileDisc, exp.PercentRank,
    exp.Pow, exp.Rank, exp.Right, exp.Round, exp.RowNumber, exp.Sign, exp.Sqrt, exp.Stddev,
    exp.StddevPop, exp.StddevSamp, exp.StrPosition, exp.Substring, exp.Sum, exp.TimestampTrunc,
    exp.Trim, exp.UnixToTime, exp.Upper, exp.Variance, exp.VariancePop, exp.JSONExtract,
    exp.JSONExtractScalar,
)  # fmt: skip
_PARTS: Final = (
    exp.Select, exp.Union, exp.Intersect, exp.Except, exp.Subquery, exp.With, exp.CTE, exp.From,
    exp.Join, exp.Table, exp.TableAlias, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered,
    exp.Limit, exp.Offset, exp.Distinct, exp.Window, exp.WindowSpec, exp.Filter, exp.WithinGroup,
    exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Literal, exp.Null, exp.Boolean, exp.Paren,
    exp.Tuple, exp.In, exp.Between, exp.Like, exp.ILike, exp.Is, exp.Not, exp.And, exp.Or,
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Add,
    exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.DPipe, exp.Exists, exp.DataType,
    exp.DataTypeParam, exp.Interval, exp.Var, exp.AtTimeZone, exp.JSONPath, exp.JSONPathRoot,
    exp.JSONPathKey, exp.JSONPathSubscript,
)  # fmt: skip
_KNOWN: Final = frozenset((*_FUNCTIONS, *_PARTS))
_TYPES: Final = frozenset(
    exp.DType[name] for name in ("BIGINT", "INT", "SMALLINT", "DOUBLE", "FLOAT", "DECIMAL",
    "BOOLEAN", "TEXT", "VARCHAR", "TIMESTAMP", "TIMESTAMPTZ", "DATE", "INTERVAL")
)  # fmt: skip
_WORD: Final = re.compile(r"[A-Za-z_]{1,20}")
_ZONE: Final = re.compile(r"[A-Za-z0-9_+\-/:]{1,64}")


@dataclass(frozen=True)
class Statement:
    """A checked statement: its tree over the names of the database, and the views that it reads."""

    text: str
    tree: exp.Expr
    views: tuple[ResultView, ...]


def checked(cluster: Cluster, text: str) -> Statement:
    """Return a statement over the views of a cluster. Raises `Invalid` with the place in the text.

    The caller may see the cluster.
    """
    try:
        tree = _parsed(text)
        _check_parts(text, tree)
        views = _resolve_tables(cluster, text, tree)
        _check_columns(text, tree, views)
    except BadExpression as bad:
        raise Invalid({"statement": [_fault(bad)]}) from None
    except RecursionError:
        raise Invalid({"statement": ["The statement is nested too deeply"]}) from None
    return Statement(text, tree, views)


def _fault(bad: BadExpression) -> Fault | str:
    line = bad.text.count("\n", 0, bad.start) + 1
    column = bad.start - (bad.text.rfind("\n", 0, bad.start) + 1) + 1
    return reworded(bad.fault, f"Line {line}, column {column}: {bad.why}")


def _parsed(text: str) -> exp.Expr:
    if not text.strip():
        raise BadExpression(text, "enter a SELECT")
    if len(text) > LONGEST:
        why = f"the statement has {len(text):,} characters, {LONGEST:,} are allowed"
        raise BadExpression(text, why, LONGEST)
    try:
        tokens = _DIALECT.tokenize(text)
        _check_beginning(text, tokens)
        parser = _DIALECT.parser(error_level=ErrorLevel.RAISE, max_errors=1)
        trees = [tree for tree in parser.parse(tokens, text) if tree is not None]
    except ParseError as error:
        raise _misread(text, error) from None
    except (SqlglotError, AttributeError, LookupError, TypeError, ValueError):
        raise BadExpression(text, "this is not SQL that can be read") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Select | exp.SetOperation):
        raise BadExpression(text, _SELECT_ONLY)
    return trees[0]


def _check_beginning(text: str, tokens: list[Token]) -> None:
    """Raise `BadExpression` for several statements, and for another one than a query."""
    if tokens[0].token_type not in _BEGINNINGS:
        raise BadExpression(text, _SELECT_ONLY, tokens[0].start, tokens[0].end + 1)
    for token in tokens[:-1]:
        if token.token_type is TokenType.SEMICOLON:
            raise BadExpression(text, "enter one statement, without others after it", token.start)


def _misread(text: str, error: ParseError) -> BadExpression:
    if not error.errors:
        return BadExpression(text, "this is not SQL that can be read")
    first = error.errors[0]
    lines = text.split("\n")[: int(first["line"]) - 1]
    end = sum(len(line) + 1 for line in lines) + int(first["col"])
    word = str(first["highlight"])
    why = f"{word!r} is not expected here; names with - or . are written in double quotes"
    return BadExpression(text, why, end - len(word), end)


def _check_parts(text: str, tree: exp.Expr) -> None:
    """Raise `BadExpression` for a part that is not known as harmless."""
    for count, node in enumerate(tree.walk()):
        if count > _MOST_PARTS:
            raise BadExpression(text, f"the statement has more than {_MOST_PARTS:,} parts")
        if why := _refusal(node):
            raise BadExpression.at_node(text, node, why)


def _refusal(node: exp.Expr) -> str:
    """Return why a node is refused, "" if it is not."""
    if type(node) not in _KNOWN:
        if not isinstance(node, exp.Func):
            return f"{type(node).__name__} is not available here"
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        return f"the function {str(name).lower()} is not available here"
    if isinstance(node, exp.Table) and not _is_name(node):
        return "only views of the cluster are tables here"
    return next((why for kind, is_wrong, why in _WRONG if isinstance(node, kind)
                 and is_wrong(node)), "")  # fmt: skip


def _is_name(table: exp.Table) -> bool:
    others = [name for name, value in table.args.items() if value]
    return isinstance(table.this, exp.Identifier) and {*others} <= _OF_TABLES


_OF_TABLES: Final = {"this", "db", "alias", "joins"}
# Classes of known nodes, what is wrong with some of them, and the message.
_WRONG: Final[tuple[tuple[type, Callable[[Any], bool], str], ...]] = (
    (exp.With, lambda node: bool(node.args.get("recursive")),
     "WITH RECURSIVE is not available here"),
    (exp.Var, lambda node: not _WORD.fullmatch(node.name), "this is not expected here"),
    (exp.DataType, lambda node: node.this not in _TYPES or bool(node.args.get("nested")),
     "the type is not available here"),
    (exp.AtTimeZone, lambda node: not _ZONE.fullmatch(node.args["zone"].name),
     "the zone must be a name as 'Europe/Berlin'"),
    (exp.Window, lambda node: not isinstance(node.this, (*_FUNCTIONS, exp.Filter)),
     "OVER follows a function"),
)  # fmt: skip


def _resolve_tables(cluster: Cluster, text: str, tree: exp.Expr) -> tuple[ResultView, ...]:
    """Replace names of tables by those of the database; return the views."""
    tables = list(tree.find_all(exp.Table))
    if len(tables) > _MOST_TABLES:
        raise BadExpression.at_node(text, tables[-1], f"at most {_MOST_TABLES} tables are possible")
    for part in tree.find_all(exp.Identifier):
        # As PostgreSQL reads names without quotes.
        part.set("this", part.this if part.args.get("quoted") else part.this.lower())
    for column in tree.find_all(exp.Column):
        # Each table has its name as alias.
        column.set("db", None)
        column.set("catalog", None)
    local = {cte.alias for cte in tree.find_all(exp.CTE)}
    schemas = ("", schema_of(cluster), cluster.slug)
    views = views_of(cluster, {table.name for table in tables})
    used: dict[int, ResultView] = {}
    for table in tables:
        view = views.get(table.name)
        if table.name in local and not table.db and not _is_within(table, table.name):
            _rename(table, _WITH + table.name)
        elif view is None or table.db not in schemas:
            raise _no_view(cluster, text, table)
        else:
            used[view.query.pk] = view
            _rename(table, view.relation, schema_of(cluster))
    for cte in tree.find_all(exp.CTE):
        cte.args["alias"].set("this", exp.to_identifier(_WITH + cte.alias, quoted=True))
    return tuple(used.values())


def _is_within(node: exp.Expr, name: str) -> bool:
    """Return whether a node is in the table of WITH that has a name, and so not this table."""
    table = node.find_ancestor(exp.CTE)
    return table is not None and (table.alias == name or _is_within(table, name))


def _rename(table: exp.Table, name: str, schema: str = "") -> None:
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
    table.set("this", exp.to_identifier(name, quoted=True))
    table.set("db", exp.to_identifier(schema, quoted=True) if schema else None)


def _no_view(cluster: Cluster, text: str, table: exp.Table) -> BadExpression:
    names = list(view_names(cluster))
    close = difflib.get_close_matches(table.name, names, _LISTED, 0.5) or names[:_LISTED]
    known = ", ".join(f'"{name}"' for name in close)
    advice = f"its views are {known}" if close else "submit a query first: each has a view"
    why = f"{cluster.slug} has no view {table.name}; {advice}"
    return BadExpression.at_node(text, table, why)


def _check_columns(text: str, tree: exp.Expr, views: Collection[ResultView]) -> None:
    """Raise `BadExpression` for a column whose name nothing in the statement has."""
    known = {column.name for view in views for column in view.columns} | _named(tree)
    for column in tree.find_all(exp.Column):
        name = column.name
        if name in known or isinstance(column.this, exp.Star):
            continue
        close = difflib.get_close_matches(name, sorted(known), 1, 0.5)
        upper = [other for other in known if other.lower() == name.lower()]
        known_ones = ", ".join(column.name for view in views for column in view.columns)
        advice = f'write "{(upper or close)[0]}"' if upper or close else f"columns: {known_ones}"
        raise BadExpression.at_node(text, column, f"there is no column {name}; {advice}")


def _named(tree: exp.Expr) -> set[str]:
    """Return the names that a statement gives to columns and tables."""

    def names() -> Iterator[str]:
        for node in tree.find_all(exp.Alias, exp.TableAlias):
            yield node.alias if isinstance(node, exp.Alias) else node.name
            if isinstance(node, exp.TableAlias):
                yield from (item.name for item in node.args.get("columns") or ())

    # Calls without an alias have the names of their functions.
    return {*names(), "count", "sum", "avg", "min", "max", "case", "coalesce", "round"}


def bounded(tree: exp.Expr) -> exp.Expr:
    """Return a copy whose cost to plan and to compute does not grow beyond its text.

    No text that is put together is long. Each query in FROM or WITH is computed apart: a planner
    that merges them copies expressions into each other, which grows exponentially.
    """

    result = tree.copy()
    # The innermost first.
    for node in reversed(list(result.walk())):
        if isinstance(node, exp.DPipe) and not isinstance(node.parent, exp.DPipe):
            most = exp.Literal.number(_LONGEST_TEXT)
            node.replace(exp.Left(this=exp.Paren(this=node.copy()), expression=most))
        elif isinstance(node, exp.CTE):
            node.set("materialized", True)  # noqa: FBT003 - an argument of a node
        elif isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From | exp.Join):
            _fence(node.this)
    return result


def _fence(query: exp.Expr) -> None:
    if not query.args.get("offset"):
        query.set("offset", exp.Offset(expression=exp.Literal.number(0)))
