"""Expressions over one side of a join with its columns named by side."""

from sqlglot import exp

from controlplane.wire.language.grammar import starts_of, syntax_of

# Expressions that need no brackets beside an operator.
_WHOLE = (exp.Column, exp.Dot, exp.Anonymous, exp.Paren, exp.Literal)


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
