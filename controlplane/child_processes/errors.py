"""Errors of computations in children, with their figures."""

import signal
from typing import ClassVar, Final

_MB: Final = 1 << 20


class Unwanted(Exception):
    """The result is not wanted any more."""


class Exhausted(Exception):
    """A computation exceeded a limit: `code` is stable, `used` and `limit` are the figures."""

    code: ClassVar[str] = ""

    def __init__(self, message: str, used: float, limit: float) -> None:
        self.used = used
        self.limit = limit
        super().__init__(message)


class OutOfMemory(Exhausted):
    """A computation needed more memory than its limit; figures are in bytes.

    `used`: the most memory that it had; the allocation that failed is not part of it.
    """

    code = "out_of_memory"

    def __init__(self, used: float, limit: float) -> None:
        super().__init__(
            f"The computation was ended because it needed more memory than its limit of "
            f"{limit / _MB:,.0f} MB (it had {used / _MB:,.0f} MB). It is not repeated: request "
            f"less, or raise the limit",
            used,
            limit,
        )


class OutOfTime(Exhausted):
    """A computation took longer than its limit; figures are in seconds."""

    code = "out_of_time"

    def __init__(self, used: float, limit: float) -> None:
        super().__init__(
            f"The computation was ended after {used:,.0f} s, its limit is {limit:,.0f} s. It is "
            f"not repeated: request less, or raise the limit",
            used,
            limit,
        )


class ChildDied(Exception):
    """The child died without a result, but not of its limits.

    `number`: the signal, or 0; `exit_code`: without a signal.
    """

    code: ClassVar[str] = "child_died"

    def __init__(self, number: int, exit_code: int = 0) -> None:
        self.number = number
        self.exit_code = exit_code
        cause = signal.Signals(number).name if number else "without a signal"
        super().__init__(f"The process of the computation died ({cause})")


class ChildFailed(Exception):
    """The computation raised an error, whose traceback is the message."""


class NoChild(Exception):
    """All children of a pool are busy, or none can be started."""
