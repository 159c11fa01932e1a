"""The state store of a node, as the engine uses it."""

import json
from typing import Any, Protocol


class Store(Protocol):
    """Bytes by name, kept from batch to batch."""

    def get(self, name: str) -> bytes | None:
        """Return what was put, None if nothing was."""

    def put(self, name: str, value: bytes) -> None:
        """Write a value."""

    def remove(self, name: str) -> None:
        """Delete a value."""


class MemoryStore(dict[str, bytes]):
    """A store in the memory of this process."""

    def put(self, name: str, value: bytes) -> None:
        """Write a value."""
        self[name] = value

    def remove(self, name: str) -> None:
        """Delete a value."""
        self.pop(name, None)


def read_json(store: Store, name: str) -> dict[str, Any]:
    """Return the object that `write_json` wrote, an empty one if none was."""
    return dict(json.loads(store.get(name) or b"{}"))


def write_json(store: Store, name: str, value: dict[str, Any]) -> None:
    """Write an object as JSON unless the store has it; an empty one only in place of another."""
    data = json.dumps(value).encode()
    if data != (store.get(name) or b"{}"):
        store.put(name, data)
