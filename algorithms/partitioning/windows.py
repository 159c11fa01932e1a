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
