"""The options of `weir queries submit`, derived from the declaration of a query."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from controlplane.cli.codes import CliError, ExitCode
from controlplane.errors import Invalid
from controlplane.formats.moments import read_moment
from controlplane.queries.key_groupings import PARAMETERS, read_parameters
from controlplane.queries.spec import DECLARED, Declaration, ParameterValue, QueryField, QuerySpec
from controlplane.wire.query_text import QueryText

_NAMED: Final = Mapping[str, str]
_PARAMETERS: Final = Mapping[str, ParameterValue]
# What an entry of an option with a mapping is, by type.
_ENTRIES: Final = {_NAMED: "NAME=EXPRESSION", _PARAMETERS: "NAME=VALUE"}
# What argparse takes for the types of fields. A list is one option that may repeat.
_ARGUMENTS: Final[Mapping[Any, Mapping[str, Any]]] = {
    str: {"metavar": "TEXT"},
    int: {"type": int, "metavar": "N"},
    float: {"type": float, "metavar": "N"},
    float | None: {"type": float, "metavar": "N"},
    datetime | None: {"type": read_moment, "metavar": "TIME"},
    Sequence[str]: {"action": "append", "metavar": "NAME"},
    Sequence[Sequence[str]]: {"action": "append", "nargs": 2, "metavar": ("LEFT", "RIGHT")},
    **{kind: {"action": "append", "metavar": entry} for kind, entry in _ENTRIES.items()},
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
    if names := ", ".join(filter(None, item.facts.get("choices", ()))):
        return f"{about}; one of {names}"
    if isinstance(item.default, int | float):
        default = str(item.default).removesuffix(".0")
        return f"{about} ({default} {item.facts.get('unit', '')}".rstrip() + ")"
    return about


def query_of(given: Namespace) -> QuerySpec:
    """Return the query of a call. Raises `CliError`, and `Invalid` for a wrong parameter."""
    values: dict[str, Any] = {
        item.name: _entries(item, value) if item.kind in _ENTRIES else value
        for item in (*DECLARED.fields, *DECLARED.text)
        if (value := getattr(given, item.name, None)) is not None
    }
    grouping = values.get("key_grouping", "")
    values[PARAMETERS] = parameter_values(grouping, values.get(PARAMETERS, {}))
    text = {item.name: values.pop(item.name) for item in DECLARED.text if item.name in values}
    right = text.pop("right")
    return QuerySpec(**values, text=QueryText(**text), right=right)


def _option(item: QueryField) -> str:
    repeats = "action" in _ARGUMENTS[item.kind]
    name = item.option.removesuffix("s") if repeats else item.option
    return f"--{name.replace('_', '-')}"


def _entries(item: QueryField, given: Sequence[str]) -> dict[str, str]:
    return named_texts(_option(item), given, _ENTRIES[item.kind], "weir queries submit --help")


def named_texts(option: str, given: Sequence[str], entry: str, advice: str) -> dict[str, str]:
    """Return the texts by name of an option that repeats.

    `entry`: what the user has to write. Raises `CliError` for a text without a name, and for a name
    that is given twice.
    """
    texts: dict[str, str] = {}
    for written in given:
        name, _, text = (part.strip() for part in written.partition("="))
        if not name or not text or name in texts:
            message = f"{option} {written}: write {entry}, each name once"
            raise CliError(ExitCode.WRONG, message, advice=advice)
        texts[name] = text
    return texts


def parameter_values(grouping: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameters of a key grouping by name. Raises `Invalid`."""
    values, faults = read_parameters(grouping, texts)
    if faults:
        raise Invalid(faults)
    return values
