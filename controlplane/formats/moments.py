"""Times that people and programs send: ISO 8601, within the calendar in UTC."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final


def within_calendar(moment: datetime) -> datetime:
    """Return a time. Raises `ValueError` for one outside of the years 1 to 9999 in UTC."""
    try:
        # A time without a zone has no time in UTC; its reader refuses it, or assumes one.
        return moment if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("Must be in the years 1 to 9999 in UTC") from None


class _Calendar:
    """Lets pydantic check the times of a field with `within_calendar`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - the command line starts without

        return core_schema.no_info_after_validator_function(within_calendar, handler(source))


IN_CALENDAR: Final = _Calendar()
Moment = Annotated[datetime, IN_CALENDAR]


def read_moment(text: str) -> datetime:
    """Return the time of a text, which is in UTC if it names no zone. Raises `ValueError`."""
    moment = datetime.fromisoformat(text.strip())
    return within_calendar(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def shifted(moment: datetime, by: timedelta) -> datetime:
    """Return a time that is later, or earlier, by a duration, at most an end of the calendar."""
    try:
        return moment + by
    except OverflowError:
        year, month, day = (9999, 12, 31) if by > timedelta(0) else (1, 1, 1)
        return datetime(year, month, day, tzinfo=UTC)
