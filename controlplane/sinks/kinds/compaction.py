"""Which small files of a day are joined, for the kinds that write files."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Final

from controlplane.results.feed import FeedPlace
from controlplane.wire.results.places import start_of
from controlplane.wire.results.tables import DAY_MS

# A file of so many bytes is not small any more.
SMALL: Final = 32 * 2**20
# Bytes that are joined together at most: what a pass costs is bounded.
MOST: Final = 4 * SMALL
# Files of a day that is not over are joined when there are so many.
MANY: Final = 16
# Commits after which a table forgets what is not read any more.
CLEAN_EVERY: Final = 200


def is_over(day: str, position: FeedPlace) -> bool:
    """Return whether the windows that start on a day (YYYY-MM-DD) are all final."""
    if not position.final:
        return False
    first = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
    return start_of(position.final) >= first.timestamp() * 1000 + DAY_MS


class DayFiles:
    """Counts the files of each day."""

    def __init__(self, days: Iterable[object]) -> None:
        self._counts = Counter(map(str, days))

    def add(self, days: Iterable[object]) -> None:
        """Count another file of some days."""
        self._counts.update(map(str, {*days}))

    def due(self, position: FeedPlace) -> str | None:
        """Return a day whose files are joined now, and count them as one."""
        for day, count in self._counts.items():
            if count >= MANY or (count > 1 and is_over(day, position)):
                self._counts[day] = 1
                return day
        return None


def small_files(sizes: Iterable[tuple[str, int | None]]) -> list[str]:
    """Return the small files that are joined next, of all by name and size (bytes); none if few.

    A file without a size does not exist.
    """
    names, total = [], 0
    for name, size in sizes:
        if size is not None and size < SMALL and total + size <= MOST:
            names.append(name)
            total += size
    return names if len(names) > 1 else []
