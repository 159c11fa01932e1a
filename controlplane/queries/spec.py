"""A submitted query: the only declaration of its fields, with types, defaults, bounds and help.

Those of its text are declared in `wire.query_text`. The bodies of the API, the cluster description,
the form, the options of the command line, the columns of the row, the checks of bounds and the
tables of the documentation are derived from these two declarations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from datetime import datetime
from typing import Any, Final, get_type_hints

from algorithms.partitioning.catalog import GROUPINGS
from controlplane.wire.query_text import MAX_TASKS, QueryText, declared

# Of both sides of a join together. The widest real query (a taxi trip) reads 79 streams.
MAX_STREAMS: Final = 200
_DAY_S: Final = 86_400
ParameterValue = bool | int | float | str | None


@dataclass(frozen=True)
class QuerySpec:
    """A query as submitted: streams by name, and its text, split by its key over `tasks`.

    A join pairs the records of `streams` with those of the streams in `right`. Their ids replace
    the names in the stored text; `text.right` of a spec is ignored. With a `key_grouping` an
    aggregator node merges the windows; the grouping and its parameters can change while the query
    runs.
    """

    name: str = declared("Name", "of one live query", group="head", min_length=1, max_length=100)
    streams: Sequence[str] = declared(
        "Streams",
        "by name; of a join, those of its left side",
        group="head",
        column="",
        min_length=1,
        max_length=MAX_STREAMS,
    )
    text: QueryText = declared(  # noqa: RUF009 - a field
        "Text", "what it computes", group="head", column=""
    )
    ends_at: datetime | None = declared(  # noqa: RUF009 - as above
        "Ends at", "when it ends automatically; null: never", None, group="head"
    )
    tasks: int = declared(
        "Tasks",
        "number of tasks among which its keys are divided",
        1,
        column="task_count",
        ge=1,
        le=MAX_TASKS,
    )
    right: Sequence[str] = declared("", "see the text", (), column="")
    key_grouping: str = declared(
        "Key grouping",
        "name of the assignment of keys to tasks; empty: by key, without an aggregator node",
        "",
        group="choice",
        choices=("", *GROUPINGS),
    )
    key_grouping_parameters: Mapping[str, ParameterValue] = declared(
        "Parameters of the key grouping",
        "parameters of the key grouping by name; the others have their defaults",
        {},
        group="choice",
    )
    retention_s: int = declared(
        "Keep results for",
        "retention of its windows, in event time",
        7 * _DAY_S,
        group="retention",
        unit="seconds",
        ge=60,
        le=10 * 366 * _DAY_S,
    )
    retention_windows: int = declared(
        "Keep at most", "so many of its windows are kept", 1_000_000,
        group="retention", unit="windows", ge=1, le=100_000_000,
    )  # fmt: skip
    shedding_weight: float = declared(
        "Weight in load shedding",
        "value of one of its records when records are dropped; 0: dropped first",
        1.0,
        ge=0,
        le=1_000_000,
    )
    shedding_floor: float = declared(
        "Minimum kept in load shedding",
        "the least part of its records that load shedding keeps, from 0 to 1",
        0.0,
        ge=0,
        le=1,
    )

    @property
    def reads(self) -> tuple[str, ...]:
        """Return the streams it reads, of both sides."""
        return (*self.streams, *self.right)


@dataclass(frozen=True)
class QueryField:
    """A declared field: its path in a request, type, default (`MISSING`: required) and facts."""

    path: str
    kind: Any
    default: Any
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def option(self) -> str:
        """Return the name in a form and on the command line, which is without a unit."""
        return self.name.removesuffix("_s")

    @property
    def title(self) -> str:
        """Return the label."""
        return str(self.facts["title"])

    @property
    def is_required(self) -> bool:
        """Return True if a request must have a value."""
        return self.default is MISSING


@dataclass(frozen=True)
class Declaration:
    """The fields of a request, and those of its text, where `right` names streams."""

    fields: tuple[QueryField, ...]
    text: tuple[QueryField, ...]

    def facts(self, path: str) -> Mapping[str, Any]:
        """Return the facts of a field by its path, such as text.window_s."""
        return next(item.facts for item in (*self.fields, *self.text) if item.path == path)

    @property
    def columns(self) -> dict[str, str]:
        """Return the column of the row by field, of the fields that are stored one by one."""
        columns = {item.name: item.facts.get("column", item.name) for item in self.fields}
        return {name: column for name, column in columns.items() if column}


def _declaration() -> Declaration:
    own = _declared(QuerySpec)
    names = next(item for item in own if item.name == "right")
    text = [
        replace(item, kind=names.kind) if item.name == names.name else item
        for item in _declared(QueryText, "text.")
    ]
    return Declaration(tuple(item for item in own if item is not names), tuple(text))


def _declared(kind: type[Any], prefix: str = "") -> list[QueryField]:
    hints = get_type_hints(kind)
    return [
        QueryField(
            f"{prefix}{item.name}",
            hints[item.name],
            item.default if item.default_factory is MISSING else item.default_factory(),
            item.metadata,
        )
        for item in fields(kind)
    ]


DECLARED: Final = _declaration()
_COLUMNS: Final = DECLARED.columns


def stored_values(spec: QuerySpec) -> dict[str, Any]:
    """Return the values of a query by column."""
    return {column: getattr(spec, name) for name, column in _COLUMNS.items()}


def submitted_values(row: Any) -> dict[str, Any]:
    """Return the values that a row stores, by field."""
    return {name: getattr(row, column) for name, column in _COLUMNS.items()}


def spec_of(request: Any) -> QuerySpec:
    """Return the query of a request, which has the declared fields as attributes."""
    values = {item.name: getattr(request, item.name) for item in DECLARED.fields}
    text = {item.name: getattr(request.text, item.name) for item in DECLARED.text}
    right = tuple(text.pop("right"))
    return QuerySpec(**values | {"text": QueryText(**text)}, right=right)
