"""The options of `weir queries submit`, derived from the declaration of a query."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from controlplane.cli.codes import Code, Refused
from controlplane.query_spec import DECLARED, Declaration, QueryField, QuerySpec
from controlplane.wire.query_text import QueryText

_NAMED: Final = Mapping[str, str]
# What argparse takes for the types of fields. A list is one option that may repeat.
_ARGUMENTS: Final[Mapping[Any, Mapping[str, Any]]] = {
    str: {"metavar": "TEXT"},
    int: {"type": int, "metavar": "N"},
    float: {"type": float, "metavar": "N"},
    float | None: {"type": float, "metavar": "N"},
    datetime | None: {"type": datetime.fromisoformat, "metavar": "TIME"},
    Sequence[str]: {"action": "append", "metavar": "NAME"},
    Sequence[Sequence[str]]: {"action": "append", "nargs": 2, "metavar": ("LEFT", "RIGHT")},
    _NAMED: {"action": "append", "metavar": "NAME=EXPRESSION"},
}


def add_query_options(sub: Any, declaration: Declaration = DECLARED) -> None:
    """Add an option for each declared field except the name and the text as a whole."""
    for item in (*declaration.fields, *declaration.text):
        if item.kind in _ARGUMENTS and item.name != "name":
            given = _ARGUMENTS[item.kind]
            default = [] if "action" in given else item.default
            sub.add_argument(
                _option(item), dest=item.name, default=default, help=_help(item), **given
            )


def _help(item: QueryField) -> str:
    about = str(item.facts["description"])
    if "action" in _ARGUMENTS[item.kind]:
        return f"{about}; may repeat"
    if isinstance(item.default, int | float):
        default = str(item.default).removesuffix(".0")
        return f"{about} ({default} {item.facts.get('unit', '')}".rstrip() + ")"
    return about


def query_of(given: Namespace) -> QuerySpec:
    """Return the query of a call. Raises `Refused`."""
    values: dict[str, Any] = {
        item.name: _named(_option(item), value) if item.kind == _NAMED else value
        for item in (*DECLARED.fields, *DECLARED.text)
        if (value := getattr(given, item.name, None)) is not None
    }
    text = {item.name: values.pop(item.name) for item in DECLARED.text if item.name in values}
    right = text.pop("right")
    return QuerySpec(**values, text=QueryText(**text), right=right)


def _option(item: QueryField) -> str:
    repeats = "action" in _ARGUMENTS[item.kind]
    name = item.option.removesuffix("s") if repeats else item.option
    return f"--{name.replace('_', '-')}"


def _named(option: str, given: Sequence[str]) -> dict[str, str]:
    """Return the expressions by name. Raises `Refused` for one without a name, or named twice."""
    expressions: dict[str, str] = {}
    for entry in given:
        name, _, expression = (part.strip() for part in entry.partition("="))
        if not name or not expression or name in expressions:
            text = f"{option} {entry}: write NAME=EXPRESSION, each name once"
            raise Refused(Code.WRONG, text, advice="weir queries submit --help")
        expressions[name] = expression
    return expressions
