"""The key grouping of a query: as its columns, as its route has it, and as text for people.

The groupings are those of `algorithms.partitioning.catalog`. A query has the name of its grouping
("" for none: by its key, without an aggregator node) and the parameters that are not the defaults.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from algorithms.errors import BadParameters, PlanningError
from algorithms.partitioning.catalog import (
    GROUPINGS,
    KEY,
    canonical_text,
    fields_of,
    grouping_text,
    parsed_text,
)
from controlplane.errors import Fields

# The field of a request that has the parameters; an error of one is at "<field>.<name>".
PARAMETERS: Final = "key_grouping_parameters"
_MAX_SHOWN: Final = 40


def route_text(name: str, parameters: Mapping[str, Any]) -> str:
    """Return the key grouping of a route: "" for no grouping and for the plain `key`.

    `parameters`: as stored.
    """
    return canonical_text(name, parameters) if name else ""


def columns_of(text: str, *, aggregated: bool) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters that a query with this route has.

    `aggregated`: True if the query has an aggregator node; other queries have no grouping.
    """
    return parsed_text(text) if text or aggregated else ("", {})


def stored_parameters(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that are not the defaults, as a query stores them.

    Raises `BadParameters`, and `UnknownGrouping` for an unknown name.
    """
    return parsed_text(grouping_text(name, parameters))[1] if name and parameters else {}


def label_of(text: str) -> str:
    """Return the grouping of a route for people: its title, and the parameters that it gives.

    An unknown grouping has its text as label.
    """
    try:
        name, parameters = parsed_text(text)
    except PlanningError:
        return text
    title = GROUPINGS[name].title
    phrases = {item.name: item.title[:1].lower() + item.title[1:] for item in fields_of(name)}
    named = {phrases[parameter]: value for parameter, value in parameters.items()}
    return f"{title} ({parameters_text(named)})" if named else title


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """Return parameters by name as text, such as "eps = 0.01, seed = 3"."""
    return ", ".join(f"{name} = {value_text(value)}" for name, value in parameters.items())


def value_text(value: object) -> str:
    """Return the value of a parameter for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value)


def grouping_faults(name: str, parameters: Mapping[str, Any], *, joins: bool) -> Fields:
    """Return the faults of a grouping and its parameters by field; "" is not a grouping.

    `joins`: True for a join, whose records must meet in one task.
    """
    if name and name not in GROUPINGS:
        shown = name[:_MAX_SHOWN]
        return {"key_grouping": [f"Must be one of {', '.join(GROUPINGS)}, not {shown}"]}
    if not name:
        return {PARAMETERS: ["Needs a key grouping"]} if parameters else {}
    try:
        text = grouping_text(name, parameters)
    except BadParameters as error:
        return {
            f"{PARAMETERS}.{parameter}": [_sentence(message) for message in messages]
            for parameter, messages in error.fields.items()
        }
    if joins and text:
        needed = f"{KEY} only, with its defaults"
        return {"key_grouping": [f"Records that are joined must meet in one task: {needed}"]}
    return {}


def key_grouping_faults(
    name: str, parameters: Mapping[str, Any], tasks: int, *, joins: bool
) -> Fields:
    """Return the faults of a query's key grouping and its parameters by field; "" is none."""
    faults = grouping_faults(name, parameters, joins=joins)
    if name and not faults and tasks <= 1:
        return {"key_grouping": ["Needs more than one task"]}
    return faults


def _sentence(message: str) -> str:
    return message[:1].upper() + message[1:]


def read_parameters(name: str, texts: Mapping[str, str]) -> tuple[dict[str, Any], Fields]:
    """Return the values of parameters given as texts, and the faults by field.

    The text of an unknown parameter remains a text, which the check of the query rejects.
    """
    fields = {field.name: field for field in fields_of(name)} if name in GROUPINGS else {}
    values: dict[str, Any] = {}
    faults: dict[str, Sequence[str]] = {}
    for parameter, text in texts.items():
        try:
            field = fields.get(parameter)
            values[parameter] = text if field is None else field.parsed(text)
        except ValueError as error:
            faults[f"{PARAMETERS}.{parameter}"] = [_sentence(str(error))]
    return values, {path: list(messages) for path, messages in faults.items()}
