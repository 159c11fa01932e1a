"""The filter bar of a list: its text, the place of a fault, help and completion from the fields."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.lists.kinds import CommonFilter, ListKind
from controlplane.pagination.columns import FieldKind, ListColumn
from controlplane.pagination.filter_text import BadFilter

# What an operator means for the values of a kind, for people.
_MEANINGS: Final[Mapping[FieldKind, str]] = {
    FieldKind.TEXT: ": contains, = is exactly",
    FieldKind.CHOICE: ": is",
    FieldKind.NUMBER: "> >= < <= compare, : is",
    FieldKind.TIME: "> >= < <= compare",
}
_VALUES: Final[Mapping[FieldKind, str]] = {
    FieldKind.TEXT: "text, in quotes with blanks",
    FieldKind.NUMBER: "number",
    FieldKind.TIME: "2026-11-24, 2026-11-24T10:30 (UTC), or an age: 30m, 2h, 7d",
}


@dataclass(frozen=True)
class FilterHelp:
    """A field of the filter text in the help."""

    name: str
    title: str
    operators: str
    values: str


@dataclass(frozen=True)
class TextFault:
    """A fault of a filter text: its message, and the text before, at and after its place."""

    message: str
    before: str
    place: str
    after: str


@dataclass(frozen=True)
class FilterBar:
    """The filter bar of a list page; `chosen`: its text with single blanks."""

    text: str
    chosen: str
    example: str
    fields: Sequence[FilterHelp]
    quick: Sequence[CommonFilter]
    completion: str
    fault: TextFault | None = None


def filter_bar(kind: ListKind, text: str, fault: BadFilter | None = None) -> FilterBar:
    """Return the filter bar of a list with a text."""
    return FilterBar(
        text=text,
        chosen=" ".join(text.split()),
        example=kind.example,
        fields=[_help(field) for field in kind.fields],
        quick=kind.common,
        completion=json.dumps([_completion(field) for field in kind.fields]),
        fault=None if fault is None else text_fault(text, fault),
    )


def text_fault(text: str, fault: BadFilter) -> TextFault:
    """Return a fault with the parts of the text around its place."""
    start, stop = int(fault.data["start"]), int(fault.data["end"])
    message = "; ".join(fault.fields["filter"])
    return TextFault(message, text[:start], text[start:stop], text[stop:])


def _help(field: ListColumn) -> FilterHelp:
    values = ", ".join(field.choices()) or _VALUES.get(field.kind, "")
    unit = f" ({field.unit})" if field.unit else ""
    return FilterHelp(field.term, field.about, _MEANINGS[field.kind], f"{values}{unit}")


def _completion(field: ListColumn) -> Mapping[str, Any]:
    return {
        "name": field.term,
        "title": field.about,
        "operators": list(field.operators),
        "values": list(field.choices()),
        "unit": field.unit,
        "is_time": field.kind is FieldKind.TIME,
    }
