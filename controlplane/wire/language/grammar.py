"""Text to sqlglot's tree: DuckDB's grammar, in which no token of the text is lost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from controlplane.wire.errors import WireError
from controlplane.wire.language.errors import Fault, Place
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
# Tokens one after the other between which something is missing, and sqlglot skips it.
_GAPS: Final = ("(,", "[,", ",,", ",)", ",]", "AS,", "AS)")
_BEFORE_SIGNS: Final = _STRUCTURE - {")", "]", "NULL", "TRUE", "FALSE", "END", "ZONE"}
# Words that sqlglot reads as names, in some places.
_OTHER_WORDS: Final = ("SYMMETRIC", "ASYMMETRIC", "LAMBDA")
# Expressions that need no brackets beside an operator.
_WHOLE: Final = (exp.Column, exp.Dot, exp.Anonymous, exp.Paren, exp.Literal)
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


_DIALECT: Final = _Dialect()


class BadExpression(WireError):
    """Text that is not an expression over the stream: `why`, and the characters [start, end)."""

    def __init__(self, text: str, why: str, start: int = 0, end: int | None = None) -> None:
        self.text = text
        self.why = why
        self.start = min(start, len(text))
        self.end = len(text) if end is None else min(max(end, self.start + 1), len(text))
        super().__init__(f"{why}, at character {self.start + 1}")

    @classmethod
    def at_node(cls, text: str, node: exp.Expr, why: str) -> "BadExpression":
        """Return the error at the characters that a node and all below it were read from."""
        metas = [below.meta for below in node.walk() if "start" in below.meta]
        if not metas:
            return cls(text, why)
        start, end = min(meta["start"] for meta in metas), max(meta["end"] for meta in metas)
        return cls(text, why, start, end + 1)

    @property
    def fault(self) -> Fault:
        """Return why, with the place in the text."""
        begin = self.text.rfind("\n", 0, self.start) + 1
        line = self.text[begin:].partition("\n")[0]
        width = max(1, min(self.end - begin, len(line)) - (self.start - begin))
        pointer = f"{' ' * (self.start - begin)}{'^' * width}"
        return Fault.of(self.why, Place(line, pointer, self.start + 1))


@dataclass(frozen=True)
class Syntax:
    """The tree of a text, its nodes by `id`, and what is wrong with a token that is in no node."""

    tree: exp.Expr
    nodes: Mapping[int, exp.Expr]
    unread: tuple[str, int, int] | None


@lru_cache(maxsize=4096)
def syntax_of(text: str) -> Syntax:
    """Return the syntax of a text, which is shared. Raises `BadExpression`.

    Parsing takes most of the check of a query, and queries of one bulk share their texts.
    """
    if len(text) > LONGEST:
        raise BadExpression(text, f"has {len(text):,} characters, {LONGEST:,} are allowed", LONGEST)
    if not text.strip():
        raise BadExpression(text, "is empty")
    try:
        tokens = _DIALECT.tokenize(text)
        trees = _DIALECT.parser(error_level=ErrorLevel.RAISE).parse(tokens, text)
    except ParseError as error:
        raise _misread(text, error) from None
    except TokenError:
        raise BadExpression(text, "ends within a text or comment", 0) from None
    except RecursionError:
        raise BadExpression(text, TOO_DEEP, _innermost(text)) from None
    except (AttributeError, LookupError, TypeError, ValueError):
        # A fault of sqlglot: its parser computes some constants, as in `x[/ 2]`.
        raise BadExpression(text, "is not an expression") from None
    tree = trees[0] if len(trees) == 1 else exp.Block(expressions=trees)
    if tree is None:
        raise BadExpression(text, "is not an expression")
    nodes = {id(node): node for node in tree.walk()}
    return Syntax(tree, nodes, _unread(text, tokens, starts_of(nodes.values())))


def starts_of(nodes: Iterable[exp.Expr]) -> set[int]:
    """Return where the names, literals and calls among nodes start in their text."""
    return {node.meta["start"] for node in nodes if "start" in node.meta}


def _unread(text: str, tokens: list[Token], starts: set[int]) -> tuple[str, int, int] | None:
    """Return the first token that is neither structure nor part of a node: why, start and end."""
    if tokens[-1].token_type is TokenType.SEMICOLON:
        tokens = tokens[:-1]
    before, is_sign, is_typed = "(", False, False
    for token in tokens:
        word = text[token.start : token.end + 1].upper()
        is_number = token.token_type is TokenType.NUMBER
        fraction = is_number and before == "."
        known = fraction or word in _STRUCTURE or token.token_type.name in CASTS
        # Of `date '2024-01-31'::text` sqlglot casts the text first.
        skipped = (is_sign and not is_number) or before + word in _GAPS
        if skipped or (is_typed and word == "::") or not (known or token.start in starts):
            return f"{word.lower()!r} is not expected here", token.start, token.end + 1
        is_sign = word == "+" and before in _BEFORE_SIGNS
        is_typed = token.token_type is TokenType.STRING and before not in _BEFORE_SIGNS
        before = "" if token.start in starts else word
    signs = [token.text for token in tokens]
    if before == "AS" or signs.count("(") != signs.count(")"):
        return f"{word.lower()!r} is not expected at the end", token.start, token.end + 1
    return None


def written(column: str) -> str:
    """Return a column's name as expressions write it, in quotes if it is a word of SQL."""
    parts = ((part, _is_word(_DIALECT.tokenize(part)[0])) for part in column.split("."))
    return ".".join(f'"{part}"' if is_word else part for part, is_word in parts)


def qualify_columns(text: str, side: str) -> str:
    """Return an expression with its columns named by their side: `a.shop` of `shop`.

    Raises `BadExpression` for a text that is none.
    """
    tree = syntax_of(text).tree
    shown = text
    starts = {min(starts_of(column.walk())) for column in tree.find_all(exp.Column)}
    for start in sorted(starts, reverse=True):
        shown = f"{shown[:start]}{side}.{shown[start:]}"
    return shown if isinstance(tree, _WHOLE) else f"({shown})"


def _is_word(token: Token) -> bool:
    return token.token_type not in _NAMES or token.text.upper() in _OTHER_WORDS


def with_advice(error: BadExpression, columns: Iterable[str]) -> BadExpression:
    """Return an error that advises quotes for a column's name read as a word of the grammar."""
    names = set(".".join(columns).split("."))
    try:
        tokens = _DIALECT.tokenize(error.text[:LONGEST])
        nodes = syntax_of(error.text).nodes.values()
        starts = starts_of(node for node in nodes if isinstance(node, exp.Identifier))
    except TokenError:
        return error
    except BadExpression:
        starts = set()
    for token in tokens:
        if token.text in names and _is_word(token) and token.start not in starts:
            why = f'{error.why}; the column {token.text} is written in quotes: "{token.text}"'
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
