"""Text to sqlglot's tree: DuckDB's grammar, in which no token of the text is lost."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from sqlglot import ErrorLevel, exp, parse_one
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import TokenType

from controlplane.wire.language.errors import BadExpression
from controlplane.wire.language.tree import Kind

LONGEST: Final = 4_000
TOO_DEEP: Final = "is nested too deeply"
# By name of a type in sqlglot: the operator that converts to it, and the kind.
CASTS: Final = {
    "INT": ("to int", Kind.INT), "BIGINT": ("to int", Kind.INT),
    "DOUBLE": ("to float", Kind.FLOAT), "FLOAT": ("to float", Kind.FLOAT),
    "DECIMAL": ("to decimal", Kind.DECIMAL),
    "TEXT": ("to text", Kind.TEXT), "VARCHAR": ("to text", Kind.TEXT),
    "DATE": ("to date", Kind.DATE),
    "TIMESTAMP": ("to time", Kind.TIME), "TIMESTAMPTZ": ("to time", Kind.TIME),
    "TIMESTAMPNTZ": ("to time", Kind.TIME),
}  # fmt: skip
# The tokens that the tree has as classes of nodes, or that bracket and separate nodes.
_SIGNS: Final = "( ) [ ] , . :: + - * / // % ^ ** || = == <> != < <= > >="
_WORDS: Final = (
    "AND OR NOT IN LIKE BETWEEN IS NULL ISNULL NOTNULL UNKNOWN TRUE FALSE CASE WHEN THEN ELSE END "
    "CAST AS WITH WITHOUT TIME ZONE"
)
_STRUCTURE: Final = frozenset([*_SIGNS.split(), *_WORDS.split()])
_OPENS: Final = ("(", "[", ",")
_CLOSES: Final = (")", "]")
_NAMES: Final = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER)


class _Dialect(DuckDB):
    """DuckDB's grammar with all calls alike: the tables of this package have the functions."""

    STRICT_STRING_CONCAT = True

    class Parser(DuckDB.Parser):  # type: ignore[misc, valid-type]
        """Keeps the grammar of CASE and CAST; all others are calls by name."""

        FUNCTIONS: Mapping[str, Any] = {}
        NO_PAREN_FUNCTIONS: Mapping[Any, Any] = {}
        NO_PAREN_FUNCTION_PARSERS = {"CASE": DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
        FUNCTION_PARSERS = {"CAST": DuckDB.Parser.FUNCTION_PARSERS["CAST"]}
        # sqlglot's default of a decimal without precision is not in the text.
        TYPE_CONVERTERS: Mapping[Any, Any] = {}


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
        raise BadExpression(text, TOO_DEEP, _innermost(text)) from None
    return tree


def starts_of(tree: exp.Expr) -> set[int]:
    """Return where the names, literals and calls of a tree start in its text."""
    return {node.meta["start"] for node in tree.walk() if "start" in node.meta}


@lru_cache(maxsize=4096)
def require_all_in_tree(text: str) -> None:
    """Raise `BadExpression` at the first token that is neither structure nor part of a node."""
    nodes = starts_of(tree_of(text))
    tokens = _Dialect().tokenize(text)
    if tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    before, is_typed = "(", False
    for token in tokens:
        word = text[token.start : token.end + 1].upper()
        fraction = token.token_type is TokenType.NUMBER and before == "."
        known = token.start in nodes or word in _STRUCTURE or token.token_type.name in CASTS
        # sqlglot skips a comma without a value on one side, and of `date '2024-01-31'::text` it
        # casts the text first.
        missing = (word == "," and before in _OPENS) or (before == "," and word in _CLOSES)
        if missing or (is_typed and word == "::") or not (known or fraction):
            why = f"{word.lower()!r} is not expected here"
            raise BadExpression(text, why, token.start, token.end + 1)
        follows_type = before in (")", "ZONE") or before not in _STRUCTURE
        is_typed = follows_type and token.token_type is TokenType.STRING
        before = word


def with_advice(error: BadExpression, columns: Iterable[str]) -> BadExpression:
    """Return an error that advises quotes for a column's name read as a word of the grammar."""
    names = set(".".join(columns).split("."))
    try:
        tokens = _Dialect().tokenize(error.text[:LONGEST])
        nodes = starts_of(tree_of(error.text))
    except TokenError:
        return error
    except BadExpression:
        nodes = set()
    for token in tokens:
        word = token.text
        if word in names and token.token_type not in _NAMES and token.start not in nodes:
            why = f'{error.why}; the column {word} is written in quotes: "{word}"'
            return BadExpression(error.text, why, error.start, error.end)
    return error


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
