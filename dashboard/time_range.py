"""The time range of a page's URL: ?range=5m, or ?from=...&to=... for a fixed one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

RANGES = {
    "5m": timedelta(minutes=5),
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
DEFAULT = "5m"
# The retention of samples is 30 days.
WIDEST = timedelta(days=31)


@dataclass(frozen=True)
class TimeRange:
    """A time range; `name`: a key of RANGES for a range that ends now, "" for a fixed one."""

    start: datetime
    end: datetime
    name: str

    @property
    def live(self) -> bool:
        """Return True if the range ends now."""
        return bool(self.name)

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


def time_range_of(values: Mapping[str, str], now: datetime) -> TimeRange:
    """Return the time range of a query string, the default if it is invalid."""
    start, end = _moment(values.get("from", "")), _moment(values.get("to", ""))
    if start and start < (end or now):
        return TimeRange(max(start, (end or now) - WIDEST), end or now, "")
    name = values.get("range", "")
    name = name if name in RANGES else DEFAULT
    return TimeRange(now - RANGES[name], now, name)


def _moment(text: str) -> datetime | None:
    try:
        if text.isdecimal():
            return datetime.fromtimestamp(int(text) / 1000, UTC)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
