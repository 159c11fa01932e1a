"""Watermarks of a stream, computed from all of its appends; nothing of the product is used."""

from collections.abc import Iterable
from typing import NamedTuple


class Appended(NamedTuple):
    """An append to a stream: when (ms), its newest event time (None: that moment), its records."""

    at_ms: int
    newest_ms: int | None
    records: int = 1


def newest_of(times_ms: Iterable[int], delay_ms: int) -> int:
    """Return the newest of some times within Tukey's fence and the delay."""
    times = sorted(times_ms)
    first, third = times[(len(times) - 1) // 4], times[3 * (len(times) - 1) // 4]
    return max(time for time in times if time - third - delay_ms <= 1.5 * (third - first))


def watermarks(
    appends: Iterable[Appended], delay_ms: int, max_future_ms: int = 3_600_000
) -> list[int | None]:
    """Return the watermark before each append, and after the last one; None for none.

    `run`: the appends since one whose time had to wait, as long as none is older by the delay, and
    no other time was confirmed.
    """
    mark: int | None = None
    run: list[tuple[int, int]] = []
    result = [mark]
    for at_ms, given, records in appends:
        newest = at_ms if given is None else given
        if newest > at_ms + max_future_ms:
            result.append(mark)
            continue
        front = max((time for _, time in run), default=newest)
        if newest < front - delay_ms:
            run = []
        confirmed = bool(run) and (front - at_ms <= delay_ms or at_ms - run[0][0] >= delay_ms)
        if confirmed:
            mark = front if mark is None else max(mark, front)
            run = []
        is_future = newest - at_ms > delay_ms and not (
            mark is not None and mark - at_ms > delay_ms and newest - mark <= delay_ms
        )
        is_jump = mark is not None and newest - mark > delay_ms and records < 3
        if given is not None and (is_future or is_jump):
            run = [*run, (at_ms, newest)]
        else:
            mark = newest if mark is None else max(mark, newest)
            run = [] if front <= mark else run
        result.append(mark)
    return result
