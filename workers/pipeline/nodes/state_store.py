"""Spark's state of one node, with as few ways to the JVM as the turn allows.

Each access of Spark's state from Python is a round trip. So a list of the names that are there is
read first, nothing is asked twice, and what has changed is written once, at the end of the turn.
"""

import json
from typing import Final

from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StringType, StructType

# Under this name the state lists all others.
NAMES: Final = "names"
# As text, Java would parse them in each task.
_KEY: Final = StructType().add("name", StringType())
_VALUE: Final = StructType().add("value", BinaryType())


def open_state(handle: StatefulProcessorHandle) -> MapState:
    """Return Spark's state of the nodes."""
    return handle.getMapState("values", _KEY, _VALUE)


class NodeStore:
    """The state of a node during one turn; `save` writes what has changed."""

    def __init__(self, state: MapState) -> None:
        self._state = state
        listed = state.getValue((NAMES,))
        self._listed = b"[]" if listed is None else bytes(listed[0])
        self._names: set[str] = set(json.loads(self._listed))
        self._read: dict[str, bytes | None] = {}
        self._written: dict[str, bytes | None] = {}

    def get(self, name: str) -> bytes | None:
        """Return what was put, None if nothing was."""
        if name in self._written:
            return self._written[name]
        if name not in self._names:
            return None
        if name not in self._read:
            result = self._state.getValue((name,))
            self._read[name] = None if result is None else bytes(result[0])
        return self._read[name]

    def items_by_name(self) -> dict[str, bytes]:
        """Return all values by name, read from the JVM now."""
        names = {*self._names, *self._written}
        result = {name: self.get(name) for name in names}
        return {name: data for name, data in result.items() if data is not None}

    def put(self, name: str, value: bytes) -> None:
        """Write a value."""
        if name != NAMES:
            self._written[name] = value

    def remove(self, name: str) -> None:
        """Delete a value."""
        self._written[name] = None

    def save(self) -> None:
        """Write what has changed."""
        for name, value in self._written.items():
            if value is None:
                if name in self._names:
                    self._names.remove(name)
                    self._state.removeKey((name,))
            elif self._read.get(name) != value:
                self._names.add(name)
                self._state.updateValue((name,), (value,))
        listed = json.dumps(sorted(self._names)).encode()
        if listed != self._listed:
            self._state.updateValue((NAMES,), (listed,))
