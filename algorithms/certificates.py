"""What every planner's certificate says when a plan is not what it claims."""

from collections.abc import Sequence


class Refuted(AssertionError):
    """A plan is not what it says; `faults` lists every difference."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = list(faults)
