"""Pydantic fields of a submitted query, derived from the declaration in `query_spec`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final, get_args, get_origin

from pydantic import Field

from controlplane.formats.moments import IN_CALENDAR
from controlplane.queries.spec import DECLARED, Declaration, QueryField

# The bounds of a declaration, and their names in JSON schema for numbers.
_BOUNDS: Final = {"gt": "exclusiveMinimum", "ge": "minimum", "le": "maximum"}
_LENGTHS: Final = {"min_length": "min", "max_length": "max"}
# What lengths are of in JSON schema, by type.
_COUNTED: Final = {str: "Length", list: "Items", dict: "Properties"}


def text_fields(*, checked: bool, declaration: Declaration = DECLARED) -> dict[str, Any]:
    """Return the fields of a text for `pydantic.create_model`; arguments as of `query_fields`."""
    return {item.name: _field(item, json_type(item.kind), checked) for item in declaration.text}


def query_fields(
    text: Any,
    *,
    checked: bool,
    moment: Any = datetime,
    declaration: Declaration = DECLARED,
) -> dict[str, Any]:
    """Return the fields of a query for `pydantic.create_model`; `text`: the model of its text.

    `checked`: the model rejects values out of bounds; otherwise the bounds are documented only, and
    the service reports them. `moment`: the type of points in time.
    """
    kinds = {"text": text}
    return {
        item.name: _field(item, kinds.get(item.name, json_type(item.kind, moment)), checked)
        for item in declaration.fields
    }


def response_fields(declaration: Declaration = DECLARED) -> dict[str, Any]:
    """Return the fields of a stored query for `pydantic.create_model`, without defaults."""
    return {
        item.name: (
            dict[str, Any] if item.name == "text" else json_type(item.kind),
            Field(description=item.facts["description"]),
        )
        for item in declaration.fields
    }


def json_type(kind: Any, moment: Any = datetime) -> Any:
    """Return the type of a declared field in JSON: lists and dictionaries; `moment`: of times."""
    arguments = tuple(json_type(argument, moment) for argument in get_args(kind))
    origin = get_origin(kind)
    if kind is datetime:
        return Annotated[moment, IN_CALENDAR, Field(strict=False)]
    if origin is None:
        return kind
    if origin is Sequence:
        return list[arguments[0]]  # type: ignore[valid-type]
    if origin is Mapping:
        return dict[arguments[0], arguments[1]]  # type: ignore[valid-type]
    return reduce(or_, arguments)


def _field(item: QueryField, kind: Any, checked: bool) -> Any:
    given: dict[str, Any] = {"title": item.title, "description": item.facts["description"]}
    bounds = {name: item.facts[name] for name in (*_BOUNDS, *_LENGTHS) if name in item.facts}
    # The service checks choices, because it has the reason of each that is not possible.
    extra = {"enum": list(item.facts["choices"])} if "choices" in item.facts else {}
    given |= bounds if checked else {}
    extra |= {} if checked else _documented(kind, bounds)
    if extra:
        given["json_schema_extra"] = extra
    if item.is_required:
        return kind, Field(**given)
    if item.default in ((), {}):
        return kind, Field(default_factory=get_origin(kind), **given)
    return kind, Field(item.default, **given)


def _documented(kind: Any, bounds: Mapping[str, Any]) -> dict[str, Any]:
    counted = _COUNTED.get(get_origin(kind) or kind, "")
    return {
        _BOUNDS.get(name) or f"{_LENGTHS[name]}{counted}": value for name, value in bounds.items()
    }
