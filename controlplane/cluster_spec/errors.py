"""What is wrong with a description."""

from collections.abc import Mapping, Sequence

from controlplane.errors import WeirError


class BadDescription(WeirError):
    """A document that is no description of a cluster: messages by their place in it."""

    def __init__(self, faults: Mapping[str, Sequence[str]]) -> None:
        self.faults = {place: list(message) for place, message in faults.items()}
        count = len(self.faults)
        super().__init__(f"The description has {count} {'fault' if count == 1 else 'faults'}")
