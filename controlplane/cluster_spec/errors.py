"""Errors of cluster descriptions."""

from collections.abc import Mapping, Sequence

from controlplane.errors import WeirError


class BadDescription(WeirError):
    """An invalid description: messages by their place in the document."""

    def __init__(self, faults: Mapping[str, Sequence[str]]) -> None:
        self.faults = {place: list(message) for place, message in faults.items()}
        count = len(self.faults)
        super().__init__(f"The description has {count} {'fault' if count == 1 else 'faults'}")
