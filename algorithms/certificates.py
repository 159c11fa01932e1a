"""The error of every planner's certificate for a plan that is not what it claims."""

from collections.abc import Sequence


class Refuted(AssertionError):
    """A plan is not what it claims; `faults` lists every difference."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = list(faults)
