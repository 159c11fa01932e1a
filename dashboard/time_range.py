"""The time range of a page's URL: ?range=30m, or ?from=...&to=... for a fixed one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from controlplane.formats.moments import read_moment

# Ranges of the picker; `?range=` takes any other number of these units, too.
RANGES: Final = {
    "5m": timedelta(minutes=5),
    "15m": timedelta(minutes=15),
    "30m": timedelta(minutes=30),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
DEFAULT: Final = "30m"
# The retention of samples is 30 days.
WIDEST: Final = timedelta(days=31)
NARROWEST: Final = timedelta(seconds=10)
# A step to an earlier or later range keeps half of what is shown.
STEP: Final = 0.5
# A step that ends so shortly before now, in parts of the range, leads to the present.
_NEAR: Final = 0.1
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_UNIT_NAMES: Final = {"s": "s", "m": "min", "h": "h", "d": "days"}
_RELATIVE: Final = re.compile(r"([1-9][0-9]{0,5})([smhd])", re.ASCII)


@dataclass(frozen=True)
class TimeRange:
    """A time range; `name`: its length for a range that ends now, as 30m, "" for a fixed one."""

    start: datetime
    end: datetime
    name: str
    now: datetime | None = field(default=None, compare=False)

    @property
    def live(self) -> bool:
        """Return True if the range ends now."""
        return bool(self.name)

    @property
    def length(self) -> timedelta:
        """Return the length of the range."""
        return self.end - self.start

    @property
    def query(self) -> str:
        """Return the query string of the range."""
        if self.live:
            return f"range={self.name}"
        return f"from={_milliseconds(self.start)}&to={_milliseconds(self.end)}"

    @property
    def milliseconds(self) -> tuple[int, int]:
        """Return both ends in ms since the epoch."""
        return _milliseconds(self.start), _milliseconds(self.end)

    @property
    def label(self) -> str:
        """Return the range in words: Last 30 min, or 24 Nov 10:16 to 10:46 UTC."""
        return f"Last {length_text(self.name)}" if self.live else self.text

    @property
    def text(self) -> str:
        """Return both ends of the range in UTC, with their days unless both are today."""
        today = (self.now or self.end).date()
        is_today = self.start.date() == self.end.date() == today
        clock = "%H:%M:%S" if self.length < timedelta(minutes=5) else "%H:%M"
        first = f"{self.start:{clock if is_today else f'%Y-%m-%d {clock}'}}"
        days = "" if self.start.date() == self.end.date() else "%Y-%m-%d "
        return f"{first} to {self.end:{days}{clock}} UTC"

    @property
    def earlier(self) -> "TimeRange":
        """Return the fixed range that is half of the length earlier."""
        return self._shifted(-STEP)

    @property
    def later(self) -> "TimeRange":
        """Return the range that is half of the length later, at most until now."""
        return self if self.live else self._shifted(STEP)

    @property
    def before(self) -> "TimeRange":
        """Return the range of the same length that ends with the start of this one."""
        return self._shifted(-1.0)

    def _shifted(self, lengths: float) -> "TimeRange":
        start, end = self.start + lengths * self.length, self.end + lengths * self.length
        if lengths > 0 and self.now is not None and end >= self.now - _NEAR * self.length:
            name = f"{max(1, round(self.length.total_seconds()))}s"
            name = next((known for known, long in RANGES.items() if long == self.length), name)
            return TimeRange(self.now - self.length, self.now, name, self.now)
        return TimeRange(start, end, "", self.now)


def time_range_of(values: Mapping[str, str], now: datetime, default: str = DEFAULT) -> TimeRange:
    """Return the time range of a query string, the default if it is invalid."""
    start, end = _moment(values.get("from", "")), _moment(values.get("to", ""))
    if start and start < (end or now):
        stop = end or now
        start = min(max(start, stop - WIDEST), stop - NARROWEST)
        return TimeRange(start, stop, "", now)
    name = values.get("range", "")
    length = _length(name)
    if length is None:
        name, length = default, RANGES[default]
    return TimeRange(now - length, now, name, now)


def length_text(name: str) -> str:
    """Return the length of a relative range in words: 30 min, 6 h, 7 days."""
    number, unit = name[:-1], name[-1:]
    return f"{number} {'day' if name == '1d' else _UNIT_NAMES[unit]}"


def _length(name: str) -> timedelta | None:
    """Return the length of a relative range, None unless it is one within the bounds."""
    if name in RANGES:
        return RANGES[name]
    match = _RELATIVE.fullmatch(name)
    if match is None:
        return None
    length = timedelta(**{_UNITS[match[2]]: int(match[1])})
    return length if NARROWEST <= length <= WIDEST else None


def _moment(text: str) -> datetime | None:
    try:
        if text.isdecimal():
            moment = datetime.fromtimestamp(int(text) / 1000, UTC)
        else:
            moment = read_moment(text)
    except (ValueError, OverflowError, OSError):
        return None
    # Of other times nothing is stored, and ranges beside them may be outside of the calendar.
    return moment if 1970 <= moment.year < 9999 else None  # noqa: PLR2004 - years


def _milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
