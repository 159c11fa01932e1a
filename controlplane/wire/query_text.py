"""The text of a query: the only declaration of its fields, with types, defaults, bounds and help.

It stands apart from `wire.query`, which parses the text, so that a program can read the declaration
without loading the parser of the language.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Final

MAX_SECONDS: Final = 7 * 86_400
MAX_TASKS: Final = 1024
_MOST_NAMED: Final = 64


def declared(title: str, description: str, default: Any = MISSING, **facts: Any) -> Any:
    """Declare a field of a dataclass; without a default it is required.

    `title`: its label; `description`: its meaning. Further facts are `unit`, `placeholder` (an
    example as a form writes it), `group` (fields that a form shows together), `lists_streams` (a
    form fills in names of streams), `choices` (the values of a text), `column` (the column of the
    row that stores it; empty: none), and bounds as pydantic names them: gt, ge, le, min_length,
    max_length.
    """
    given: dict[str, Any] = {"default": default} if default != {} else {"default_factory": dict}
    return field(metadata={"title": title, "description": description, **facts}, **given)


@dataclass(frozen=True)
class QueryText:
    """A query as it is submitted.

    Records that are older than the newest before them by more than `lateness_s` are late.

    A join pairs the records of the streams in `right` with those of the others, where both are in
    the same window and each pair of expressions in `on` has the same value on the left and on the
    right. Its columns are those of both sides: `a.amount` is of the left, `b.amount` of the right;
    in `on` each expression is over the columns of its own side, as the stream names them. Requests
    name the streams in `right`; here they are ids.
    """

    aggregates: Mapping[str, str] = declared(
        "Aggregates", "expressions by the name of their result", max_length=_MOST_NAMED
    )
    window_s: float = declared(
        "Window", "length of a window of event time", 60.0, unit="seconds", gt=0, le=MAX_SECONDS
    )
    slide_s: float | None = declared(
        "Slide",
        "a window begins every so many seconds, at most its length; null: as the window",
        None,
        unit="seconds",
        gt=0,
        le=MAX_SECONDS,
        placeholder="as the window",
    )
    lateness_s: float = declared(
        "Lateness",
        "records older than the newest before them by more are late and not aggregated",
        120.0,
        unit="seconds",
        ge=0,
        le=MAX_SECONDS,
    )
    where: str = declared(
        "Where",
        "a condition on each record, left out if false or null; empty: all records",
        "",
        placeholder="amount is not null and items > 3",
    )
    columns: Mapping[str, str] = declared(
        "Columns",
        "expressions by name, computed for each record; later ones and all other fields "
        "may name them",
        {},
        placeholder="price = amount / items",
        max_length=_MOST_NAMED,
    )
    key: Sequence[str] = declared(
        "Key",
        "columns to group by; stream is the stream of the record; empty: one group",
        (),
        unit="columns",
        max_length=8,
    )
    right: Sequence[int] = declared(
        "Right streams",
        "of a join, the streams of its right side; a stream is on one side only",
        (),
        group="join",
        lists_streams=True,
        placeholder=" ",
    )
    on: Sequence[Sequence[str]] = declared(
        "Equal on both sides",
        "of a join, pairs of expressions, of the left and of the right, with equal values", (),
        group="join", unit="pairs", max_length=8, placeholder="left column <-> right column",
    )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the query as JSON values, without defaults."""
        return {
            name: value
            for name, value in _values(self).items()
            if name == "aggregates" or value != _DEFAULTS[name]
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "QueryText":
        """Return the query that `to_json` wrote."""
        return cls(**row)

    def to_text(self) -> str:
        """Return the one way to write it: what is stored, and what the data plane gets."""
        return json.dumps(self.to_json(), separators=(",", ":"), ensure_ascii=False)


def _values(text: QueryText) -> dict[str, Any]:
    return {item.name: _plain(getattr(text, item.name)) for item in fields(text)}


def _plain(value: Any) -> Any:
    """Return a value with lists and dictionaries for sequences and mappings."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


_DEFAULTS: Final = _values(QueryText({}))
