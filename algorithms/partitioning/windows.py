"""Windows of a query and the panes into which they divide time (paper 001, sections 4.2 and 5.2).

Sizes are numbers of messages or milliseconds; window and slide have the same unit.
"""

from math import gcd

from algorithms.checks import check_count


def pane_size(window: int, slide: int) -> int:
    """Return the size of a pane, gcd(window, slide). Raises `BadProblem`."""
    check_count("window", window)
    check_count("slide", slide)
    return gcd(window, slide)


def is_window_closer(index: int, window: int, slide: int) -> bool:
    """Return whether the message with this index, from 1 on, closes a window."""
    return index >= window and (index - window) % slide == 0


def window_closers(window: int, slide: int, last: int) -> list[int]:
    """Return the indices up to `last` that close a window. Raises `BadProblem`."""
    check_count("window", window)
    check_count("slide", slide)
    return [index for index in range(1, last + 1) if is_window_closer(index, window, slide)]
