"""Closers of windows by their messages (paper 001, section 5.2)."""

from algorithms.checks import check_count


def is_window_closer(index: int, window: int, slide: int) -> bool:
    """Return whether the message with this index, from 1 on, closes a window."""
    return index >= window and (index - window) % slide == 0


def window_closers(window: int, slide: int, last: int) -> list[int]:
    """Return the indices up to `last` that close a window. Raises `BadProblem`."""
    check_count("window", window)
    check_count("slide", slide)
    return [index for index in range(1, last + 1) if is_window_closer(index, window, slide)]
