"""The fields of a key grouping and its parameters in the forms of a query."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from algorithms.partitioning.catalog import GROUPINGS, KEY, fields_of
from algorithms.vocabulary import ParameterField, title_of_name
from controlplane.catalog.computations import text_of
from controlplane.errors import Fields, Invalid
from controlplane.models import Query
from controlplane.queries.key_groupings import PARAMETERS, label_of, route_text
from controlplane.wire.query import is_join
from dashboard.forms import form_fields, parameters


def parameters_of(values: Mapping[str, str]) -> tuple[dict[str, Any], Fields]:
    """Return the parameters of the chosen grouping, and the faults by field.

    A form that shows the parameters of a grouping has a field with the grouping's mark; without
    it, all parameters have their defaults.
    """
    name = values.get("key_grouping", "").strip()
    if name not in GROUPINGS or _mark(name) not in values:
        return {}, {}
    try:
        given = parameters(_named(name), values)
    except Invalid as invalid:
        faults = {f"{PARAMETERS}.{_last(path)}": why for path, why in invalid.fields.items()}
        return {}, faults
    return {_last(path): value for path, value in given.items()}, {}


def parameter_title(grouping: str, name: str) -> str:
    """Return the title of a parameter of a grouping; of an unknown one the words of its name."""
    fields = fields_of(grouping) if grouping in GROUPINGS else ()
    return {field.name: field.title for field in fields}.get(name) or title_of_name(name)


def grouping_choices(
    chosen: str, values: Mapping[str, str], *, joins: bool = False
) -> list[dict[str, Any]]:
    """Return the groupings that a form offers, with the fields of their parameters.

    `values`: of the form. `joins`: True for a join, which has the plain `key` without parameters.
    """
    return [
        {
            "info": info,
            "is_chosen": info.name == chosen,
            "mark": _mark(info.name),
            **({"fields": []} if joins else _parameter_fields(info.name, values)),
        }
        for info in GROUPINGS.values()
        if info.by_key or not joins
    ]


def _parameter_fields(name: str, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a grouping, and whether a value is not the default."""
    own = {path: text for path, text in values.items() if path.startswith(_mark(name))}
    fields, defaults = (form_fields(_named(name), texts, {}) for texts in (own, {}))
    return {"fields": fields, "is_changed": fields != defaults}


def grouping_values(query: Query) -> dict[str, str]:
    """Return the values of the form for the present key grouping of a query."""
    name = query.key_grouping or KEY
    own = query.key_grouping_parameters
    texts = {field.name: _text(own.get(_last(field.name), field.default)) for field in _named(name)}
    return {"key_grouping": name, _mark(name): "1"} | texts


def grouping_context(query: Query, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the present key grouping of a query, and the choices of its dialog."""
    text = route_text(query.key_grouping, query.key_grouping_parameters)
    chosen = values.get("key_grouping", "")
    return {
        "key_grouping": GROUPINGS[query.key_grouping or KEY],
        "key_grouping_label": label_of(text),
        "key_groupings": grouping_choices(chosen, values, joins=is_join(text_of(query))),
    }


def _named(name: str) -> list[ParameterField]:
    """Return the parameters of a grouping with names that are unique in the form."""
    return [replace(field, name=f"{_mark(name)}{field.name}") for field in fields_of(name)]


def _mark(name: str) -> str:
    return f"{name}."


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else ""
    return "" if value is None else str(value).removesuffix(".0")
