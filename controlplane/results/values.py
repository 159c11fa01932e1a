"""Conversion of windows to JSON values, with names of streams."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

from controlplane.catalog.computations import is_stream
from controlplane.results.estimates import ResultEstimate, estimates_of
from controlplane.results.filters import WindowState
from controlplane.wire.aggregates.sampling import Sampled
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import Computation
from controlplane.wire.query_text import QueryText
from controlplane.wire.results.json_values import Raised
from controlplane.wire.results.places import start_of

_NO_ERRORS: Final[Mapping[str, str]] = {}
_NO_ESTIMATES: Final[Mapping[str, ResultEstimate]] = {}


class KeyedWindow(NamedTuple):
    """One window of one key; moments are datetimes.

    JSON has no infinities and no NaN: these are the texts Infinity, -Infinity and NaN; decimals are
    texts, too. `errors`: by aggregate why it has no value. `changed_at`: when a value of the window
    last changed, None if it is not stored. `kept`: the estimated fraction of its records that drop
    rules kept, None if it is unknown; `estimates`: of counts and sums over all records, if it is
    below 1.
    """

    start: datetime
    key: Mapping[str, Any]
    values: Mapping[str, Any]
    batch: int
    state: WindowState = WindowState.OPEN
    changed_at: datetime | None = None
    errors: Mapping[str, str] = _NO_ERRORS
    kept: float | None = 1.0
    estimates: Mapping[str, ResultEstimate] = _NO_ESTIMATES


def window_row(window: KeyedWindow) -> dict[str, Any]:
    """Return a window as JSON values of a response."""
    fields = window._asdict()
    estimates = fields["estimates"].items()
    fields["estimates"] = {name: estimate._asdict() for name, estimate in estimates}
    return {"window_start": fields.pop("start"), **fields}


class RawWindow(NamedTuple):
    """A window as stored: its place, key and values in the order of the query's columns.

    `sampled`: the sample that drop rules took, None for all records.
    """

    place: bytes
    key: Sequence[Any]
    values: Sequence[Any]
    batch: int
    state: WindowState
    changed_ms: int = 0
    errors: Mapping[str, str] = _NO_ERRORS
    sampled: Sampled | None = None


@dataclass(frozen=True)
class ResultColumns:
    """Names and kinds of the columns of a query's results.

    `computation`: None if the query calls a missing function.
    """

    text: QueryText
    computation: Computation | None
    streams: Mapping[int, str]

    def shown(self, window: RawWindow) -> KeyedWindow:
        """Return a window with named and converted columns."""
        key = {}
        for (name, kind, as_it_is), value in zip(self._key, window.key, strict=True):
            if type(value) in as_it_is:
                key[name] = value
            elif kind is None:
                key[name] = self.streams.get(value, str(value))
            else:
                key[name] = plain(value, kind)
        values, errors = {}, window.errors
        for (name, kind, as_it_is), value in zip(self._values, window.values, strict=True):
            if type(value) in as_it_is:
                values[name] = value
                continue
            if isinstance(value, Raised):
                errors = {**errors, name: value.error}
            values[name] = plain(value, kind)
        if errors:
            values |= dict.fromkeys(errors)
        changed_at = moment(window.changed_ms) if window.changed_ms else None
        start = moment(start_of(window.place))
        shown = KeyedWindow(start, key, values, window.batch, window.state, changed_at, errors)
        return shown if window.sampled is None else self._estimated(shown, window.sampled)

    def _estimated(self, window: KeyedWindow, sampled: Sampled) -> KeyedWindow:
        known = self.computation
        estimates = {} if known is None else estimates_of(known, window.values, sampled)
        return window._replace(kept=sampled.kept, estimates=estimates)

    @cached_property
    def _key(self) -> list[tuple[str, Kind | None, frozenset[type]]]:
        """Return for each column of the key its name, its kind, and which types stay as they are.

        The kind is None for the stream, of which the name is shown.
        """
        columns = dict(self.computation.key) if self.computation else {}
        described: list[tuple[str, Kind | None, frozenset[type]]] = []
        for name in dict.fromkeys(self.text.key):
            column = columns.get(name)
            if column is not None and is_stream(name, column):
                described.append((name, None, frozenset()))
            else:
                kind = column.kind if column is not None else Kind.NULL
                described.append((name, kind, _as_they_are(kind)))
        return described

    @cached_property
    def _values(self) -> list[tuple[str, Kind, frozenset[type]]]:
        """Return for each aggregate its name, its kind, and which types stay as they are."""
        aggregates = dict(self.computation.aggregates) if self.computation else {}
        kinds = {name: aggregates[name].kind if name in aggregates else Kind.NULL
                 for name in self.text.aggregates}  # fmt: skip
        return [(name, kind, _as_they_are(kind)) for name, kind in kinds.items()]


def _as_they_are(kind: Kind) -> frozenset[type]:
    """Return the types of which JSON has all values of a kind as they are; most values are such."""
    return frozenset() if kind is Kind.TIME else _PLAIN


def plain(value: Any, kind: Kind) -> Any:
    """Return a value as a JSON value, and times as datetimes."""
    match value:
        case bool() | int() | float() if kind is Kind.TIME and math.isfinite(value):
            return moment(int(value))
        case float() if not math.isfinite(value):
            return _NOT_FINITE.get(value, "NaN")
        case None | bool() | int() | float() | str() | datetime():
            return value
        case list() | tuple():
            return [plain(item, Kind.NULL) for item in value]
        case Decimal():
            return decimal_text(value)
    # Dates, and whatever a user's aggregate returns.
    return str(value)


def decimal_text(value: Decimal) -> str:
    """Return all digits of a decimal, without zeros at its end: 1.5, 100, 0.000000003."""
    # `normalize` would round to the 28 digits of Python's context.
    text = f"{value:f}"
    plain_text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if plain_text == "-0" else plain_text


_PLAIN: Final[frozenset[type]] = frozenset({int, str, bool, type(None)})
_NOT_FINITE: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}
_EDGES: Final = (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC))


@lru_cache(maxsize=4096)
def moment(ms: int) -> datetime:
    """Return the moment of ms since the epoch, limited to the range of the calendar."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return _EDGES[ms > 0]
