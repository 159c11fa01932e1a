"""A query as formatted SQL text."""

import re
from collections.abc import Sequence
from typing import Final

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from controlplane.wire.language.grammar import BadExpression, qualify_columns
from controlplane.wire.query import SIDES
from controlplane.wire.query_text import QueryText

# More names than these make the line unreadable; the page lists all of them elsewhere.
SHOWN_STREAMS = 4

# What is on one line: comments and space between words, but not within texts and names.
_SPACE: Final = re.compile(r"""('(?:[^']|'')*'|"[^"]*")|(?:--[^\n]*|\s)+""")
# Of text that is escaped already: keywords that begin a line or stand in it, functions, texts.
_TOKENS: Final = re.compile(
    r"(?P<k>\b(?:WITH|SELECT|FROM|WHERE|GROUP BY|LATENESS|SPLIT|JOIN|ON|AND|WITHIN|AS)\b)"
    r"|(?P<n>&#x27;[^&]*&#x27;)"
    r"|(?P<f>\b[a-z_][a-z0-9_]*(?=\())"
)


def highlighted(sql: str) -> SafeString:
    """Return the text of a query as HTML with classes for keywords, functions and texts."""
    marked = _TOKENS.sub(
        lambda token: f'<span class="{token.lastgroup}">{token[0]}</span>', escape(sql)
    )
    return mark_safe(marked)  # noqa: S308 - escaped before the marks are added


def pseudo_sql(
    text: QueryText, streams: Sequence[str], tasks: int = 1, right: Sequence[str] = ()
) -> str:
    """Return the query in words of SQL. It is to be read; what runs are its parts.

    `streams`: of a join, those of its left side; `right`: those of its right side.
    """
    columns = [f"{name} = {_flat(expression)}" for name, expression in text.columns.items()]
    aggregates = [f"{_flat(line)} AS {name}" for name, line in text.aggregates.items()]
    split_by = "what is equal on both sides" if text.on else ", ".join(text.key)
    lines = [
        *_list("WITH", columns),
        *_list("SELECT", [*text.key, *aggregates]),
        *(_join(text, streams, right) if right else [_line("FROM", _streams(streams))]),
        *([_line("WHERE", _flat(text.where))] if text.where else []),
        _line("GROUP BY", ", ".join([*text.key, f"window of {window_text(text)}"])),
        _line("LATENESS", f"{text.lateness_s:g} s"),
        *([_line("SPLIT", f"over {tasks:,} tasks by {split_by}")] if tasks > 1 else []),
    ]
    return "\n".join(lines)


def window_text(text: QueryText) -> str:
    """Return length and distance of the windows: 300 s every 60 s."""
    slides = text.slide_s is not None and text.slide_s != text.window_s
    return f"{text.window_s:g} s" + (f" every {text.slide_s:g} s" if slides else "")


def _join(text: QueryText, left: Sequence[str], right: Sequence[str]) -> list[str]:
    pairs = [
        " = ".join(_of_side(*expression) for expression in zip(pair, SIDES, strict=True))
        for pair in text.on
    ]
    return [
        _line("FROM", f"({_streams(left)}) AS {SIDES[0]}"),
        _line("JOIN", f"({_streams(right)}) AS {SIDES[1]}"),
        *(_line("AND" if index else "ON", pair) for index, pair in enumerate(pairs)),
        _line("WITHIN", "the same window"),
    ]


def _of_side(text: str, side: str) -> str:
    try:
        return qualify_columns(_flat(text), side)
    except BadExpression:  # an expression was checked before it was stored; this is for the eye
        return f"{side}: {_flat(text)}"


def _streams(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_STREAMS
    shown = ", ".join(names[:SHOWN_STREAMS])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _list(word: str, items: Sequence[str]) -> list[str]:
    rows = [f"{item}," for item in items[:-1]] + list(items[-1:])
    return [_line(word if not index else "", row) for index, row in enumerate(rows)]


def _line(word: str, rest: str) -> str:
    return f"{word:<8} {rest}"


def _flat(text: str) -> str:
    return _SPACE.sub(lambda space: space[1] or " ", text).strip()
