"""The declaration of a generator: events of NEXMark at a rate of any declared shape."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Any, ClassVar, Final

from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.base import BadSource, StreamSource

_MOST_POINTS: Final = 100
_MOST_RATE: Final = 10_000_000
_MOST: Final = 2**53
_MOST_PARTITIONS: Final = 1_000
_MOST_S: Final = 10 * 365 * 86_400


class EventKind(StrEnum):
    """The kinds of events of NEXMark, of which a stream has one."""

    PERSON = "person"
    AUCTION = "auction"
    BID = "bid"


_TEXT, _ID, _TIME = "string", "int64", "timestamp(ms)"
# The columns of each kind of event, of which a stream has any.
COLUMNS: Final = MappingProxyType({
    EventKind.PERSON: {
        "id": _ID, "name": _TEXT, "email_address": _TEXT, "credit_card": _TEXT, "city": _TEXT,
        "state": _TEXT, "date_time": _TIME,
    },
    EventKind.AUCTION: {
        "id": _ID, "item_name": _TEXT, "description": _TEXT, "initial_bid": _ID, "reserve": _ID,
        "date_time": _TIME, "expires": _TIME, "seller": _ID, "category": _ID,
    },
    EventKind.BID: {
        "auction": _ID, "bidder": _ID, "price": _ID, "channel": _TEXT, "url": _TEXT,
        "date_time": _TIME,
    },
})  # fmt: skip


@dataclass(frozen=True, eq=False)
class GeneratorSource(StreamSource):
    """Events of NEXMark of one kind; event i is a function of `seed` and i.

    `start`: when the first events have occurred, a time with a zone. `rate`: events/s of all kinds
    together, as points [second after the start, rate] with straight lines between; after the last
    point its rate holds, or the shape repeats every `period_s`. Of 50 events 1 is a person, 3 are
    auctions and 46 bids. `total`: events of all kinds, 0 for no end. Raises `BadSource`.
    """

    kind: ClassVar[str] = "generator"
    about: ClassVar[Mapping[str, str]] = MappingProxyType({
        "start": "when the first events occur: a time with a zone",
        "event": "`person`, `auction` or `bid`",
        "rate": "events/s of all kinds: points [second, rate]",
        "period_s": "after so many seconds the rate repeats; 0: its last value holds",
        "seed": "events are a function of it and their number",
        "partitions": "partitions that are read at once",
        "total": "events of all kinds; 0: no end",
    })  # fmt: skip

    start: str
    event: str = EventKind.BID
    rate: list[list[float]] = field(default_factory=lambda: [[0, 100]])
    period_s: float = 0.0
    seed: int = 0
    partitions: int = 1
    total: int = 0

    def __post_init__(self) -> None:
        if faults := {name: why for name, why in _faults(self) if why}:
            raise BadSource(faults)

    @property
    def start_ms(self) -> int:
        """Return the start in milliseconds."""
        return round(datetime.fromisoformat(self.start).astimezone(UTC).timestamp() * 1000)

    @property
    def identity(self) -> str:
        """Return what makes offsets of two declarations offsets of the same events."""
        return self.to_text()

    @property
    def place(self) -> str:
        """Return what is read."""
        return f"generator of NEXMark: {self.event}"

    def faults_with_schema(self, schema: StreamSchema) -> dict[str, str]:
        """Return by field why events cannot be records of a schema."""
        known = COLUMNS[EventKind(self.event)]
        wrong = [column.name for column in schema.columns if known.get(column.name) != column.type]
        faults = {"event": f"{wrong[0]} {_wrong(self.event, known.get(wrong[0]))}"} if wrong else {}
        if not schema.event_time:
            faults["event_time"] = "a generator needs one: date_time"
        return faults


def _wrong(event: str, type_name: str | None) -> str:
    if type_name is None:
        return f"is not a column of {event}: these are {', '.join(COLUMNS[EventKind(event)])}"
    return f"must be of type {type_name}"


def _faults(source: GeneratorSource) -> Iterable[tuple[str, str]]:
    yield "start", "" if _is_time(source.start) else "must be a time with a zone (ISO 8601)"
    kinds = list(EventKind)
    yield "event", "" if source.event in kinds else f"must be {' or '.join(kinds)}"
    yield (
        "rate",
        ""
        if _is_shape(source.rate)
        else (f"must be 1 to {_MOST_POINTS} points [second, events/s] in order, the first at 0"),
    )
    if _is_shape(source.rate):
        yield (
            "period_s",
            ""
            if _fits(source)
            else ("must be 0 or not less than the last second of the rate, and the rate not 0"),
        )
    for name, least, most in (
        ("seed", 0, _MOST), ("partitions", 1, _MOST_PARTITIONS), ("total", 0, _MOST)
    ):  # fmt: skip
        value = getattr(source, name)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        yield name, "" if is_number and least <= value <= most else f"must be {least} to {most:,}"


def _is_time(text: Any) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except (ValueError, TypeError):
        return False


def _is_shape(rate: Any) -> bool:
    if not isinstance(rate, list) or not 1 <= len(rate) <= _MOST_POINTS:
        return False
    if not all(isinstance(point, list) and len(point) == len(("second", "rate")) for point in rate):
        return False
    numbers = [value for point in rate for value in point]
    if not all(isinstance(n, int | float) and math.isfinite(n) and n >= 0 for n in numbers):
        return False
    seconds, rates = zip(*rate, strict=True)
    is_ordered = all(a < b for a, b in pairwise(seconds))
    return seconds[0] == 0 and is_ordered and seconds[-1] <= _MOST_S and max(rates) <= _MOST_RATE


def _fits(source: GeneratorSource) -> bool:
    period = source.period_s
    if not isinstance(period, int | float) or isinstance(period, bool):
        return False
    has_events = any(rate for _, rate in source.rate)
    return period == 0 or (has_events and max(1, source.rate[-1][0]) <= period <= _MOST_S)
