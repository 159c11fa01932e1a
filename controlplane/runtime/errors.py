"""Why Weir cannot start or go on, each with what a person can do about it."""


class RunError(Exception):
    """Base: `str()` is the line a person reads, `advice` what to do."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


class CheckFailed(RunError):
    """Something this machine lacks or has taken."""


class StepFailed(RunError):
    """A step of the start (such as a migration) ended with an error."""

    def __init__(self, name: str, code: int, tail: str, advice: str) -> None:
        super().__init__(f"{name} ended with code {code}:\n{tail}", advice)


class ChildFailed(RunError):
    """A process died too often to be started again."""

    def __init__(self, name: str, code: int, deaths: int, tail: str, advice: str) -> None:
        super().__init__(f"{name} {how_it_ended(code)}, {deaths} times in a row:\n{tail}", advice)


class Stopped(Exception):
    """The end of Weir was requested while it was waiting."""


def how_it_ended(code: int) -> str:
    """Return words for a return code; a negative one is the signal that ended the process."""
    if code < 0:
        return f"was ended by signal {-code}"
    return f"ended with code {code}"
