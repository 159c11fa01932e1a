"""The state store of a node, as the engine uses it."""

from typing import Protocol


class Store(Protocol):
    """Bytes by name, kept from batch to batch."""

    def get(self, name: str) -> bytes | None:
        """Return what was put, None if nothing was."""

    def put(self, name: str, value: bytes) -> None:
        """Write a value."""

    def remove(self, name: str) -> None:
        """Delete a value."""
