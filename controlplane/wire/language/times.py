"""Times in text: ISO 8601, in UTC where no zone is given."""

from datetime import UTC, datetime


def milliseconds(text: str) -> int:
    """Return the milliseconds since 1970 of a time. Raises `ValueError`."""
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
