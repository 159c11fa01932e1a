"""Columns of lists: one declaration, from which the list has the column everywhere.

The table of the page, its orders, the filter text with its help, the API with its description, the
files, the table of the command line and the explanation of the label follow from it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from django.db.models import Q

LOOKUPS: Final = MappingProxyType({">": "gt", ">=": "gte", "<": "lt", "<=": "lte"})


class FieldKind(StrEnum):
    """What values a field of the filter text has, which decides its operators."""

    NONE = ""
    TEXT = "text"
    CHOICE = "choice"
    NUMBER = "number"
    TIME = "time"


@dataclass(frozen=True, kw_only=True)
class ListColumn:
    """A column of a list, whose values name where it is."""

    # What it is in the API, for people, and its unit.
    name: str
    about: str = ""
    unit: str = ""
    # Its value in a row; the page shows it where `is_known`.
    value: Callable[[Any], Any] | None = None
    is_known: Callable[[Any], bool] = lambda _row: True
    # Page: its label, what stands below it, and the label of the glossary that explains it; whether
    # it is a number, and the one that the row is about.
    title: str = ""
    note: str = ""
    explained_by: str = ""
    is_figure: bool = False
    is_main: bool = False
    # Filter text: its name there, which is that of its order too, the kind of its values, and its
    # condition of a scope (the cluster of the rows, None for all), a lookup of Django and a value.
    term: str = ""
    kind: FieldKind = FieldKind.NONE
    condition: Callable[[Any, str, Any], Q] | None = None
    choices: Callable[[], Sequence[str]] = tuple
    # The column of the database that filter and order read, and the sign of the first order.
    stored: str = ""
    is_ordered: bool = False
    first: str = ""
    # API: whether it is there, and its type if it is not a column of the model.
    in_api: bool = False
    type: Any = None
    # Its name in files, None: as in the API, "": it is in none.
    in_file: str | None = None
    # Command line: its place in the table from 1, 0: it is not there.
    place: int = 0

    @property
    def operators(self) -> tuple[str, ...]:
        """Return the operators that it takes in a filter text."""
        if self.kind in (FieldKind.NUMBER, FieldKind.TIME):
            return (*LOOKUPS, "=", ":") if self.kind is FieldKind.NUMBER else tuple(LOOKUPS)
        return (":", "=")

    def holds(self, scope: Any, lookup: str, value: Any) -> Q:
        """Return the condition that it has a value."""
        if self.condition is not None:
            return self.condition(scope, lookup, value)
        return Q(**{f"{self.stored}__{lookup}": value})

    @property
    def label(self) -> str:
        """Return the label with what stands below it."""
        return f"{self.title}, {self.note}" if self.note else self.title

    @property
    def description(self) -> str | None:
        """Return what it is, with its unit, None if that is not declared."""
        return f"{self.about} ({self.unit})" if self.unit else self.about or None

    @property
    def file_name(self) -> str:
        """Return its name in files, "" if it is in none."""
        return "" if self.value is None else self.name if self.in_file is None else self.in_file


Columns = Sequence[ListColumn]


def stored(
    name: str, about: str = "", term: str = "", *, below: str = "", **more: Any
) -> ListColumn:
    """Return a column of the model, which the API has and filter and order read.

    `below`: the attribute of a row that has the model, "" if it is the row itself; `more`: other
    values of `ListColumn`.
    """
    value = attrgetter(f"{below}.{name}" if below else name)
    given: dict[str, Any] = {"value": value, "stored": name, "in_api": True}
    given["kind"] = FieldKind.TEXT if term else FieldKind.NONE
    return ListColumn(name=name, about=about, term=term, **given | more)


def orders_of(columns: Columns) -> Mapping[str, str]:
    """Return the orders of a list: what a column is called there, and in the database."""
    return {column.term: column.stored for column in columns if column.is_ordered}


def order_names(columns: Columns) -> tuple[str, ...]:
    """Return the names of the orders; "-" before one turns it round."""
    return tuple(sign + name for name in orders_of(columns) for sign in ("", "-"))


def file_columns(columns: Columns) -> Columns:
    """Return the columns of files."""
    return [column for column in columns if column.file_name]


def values_of(columns: Columns, row: Any) -> dict[str, Any]:
    """Return the values of a row in the API, by name."""
    return {column.name: column.value(row) for column in columns if column.in_api and column.value}


def terminal_names(columns: Columns) -> str:
    """Return the names of the columns that the command line shows."""
    shown = sorted((column for column in columns if column.place), key=lambda column: column.place)
    return " ".join(column.name for column in shown)
