"""Errors of the start and of running Weir, each with advice."""


class RunError(Exception):
    """Base class: `str()` is the line for a person, `advice` what to do."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


class CheckFailed(RunError):
    """A requirement of the start does not hold on this machine."""


class Stopped(Exception):
    """The stop of Weir was requested during a wait."""


def how_it_ended(code: int) -> str:
    """Return the text of a return code; a negative one is the signal that ended the process."""
    if code < 0:
        return f"was ended by signal {-code}"
    return f"ended with code {code}"
