"""Functions that take a known time per record, whatever else the machine does."""

import time
from typing import Any, Final

from controlplane.wire.language.registered import function

# Seconds per record.
SLOW_S: Final = 0.0005
SLOWER_S: Final = 0.001


@function(takes=("int",), gives="int")
def slow(value: Any) -> Any:
    """Return the values after the time of a slow node."""
    time.sleep(SLOW_S * len(value))
    return value


@function(takes=("int",), gives="int")
def slower(value: Any) -> Any:
    """Return the values after the time of a slower node."""
    time.sleep(SLOWER_S * len(value))
    return value
