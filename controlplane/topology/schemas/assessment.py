"""What a change of a schema would do: its parts, which are refused, and which queries these break.

Pure over schemas and readers; the service and the preview of the page ask it alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.topology.schemas.evolution import (
    EVENT_TIME,
    SchemaChange,
    applied,
    changes_between,
    without_column,
)
from controlplane.topology.schemas.readers import SchemaReader, affected
from controlplane.wire.schema import StreamSchema

# The number of queries that a refusal names, besides their count.
MAX_NAMED: Final = 20
_READ: Final = "a live query reads it"
_TOGETHER: Final = "the changes together would change what a live query computes"


@dataclass(frozen=True)
class Assessed:
    """One change, why it is refused (empty: it is not), and the live queries it would break."""

    change: SchemaChange
    refusal: str = ""
    queries: tuple[str, ...] = ()
    # The message of the first of them.
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the change as JSON values; of many queries the first."""
        return {
            "column": self.change.name,
            "action": self.change.action,
            "detail": self.change.detail,
            "reason": self.refusal,
            "query_reason": self.reason,
            "queries": list(self.queries[:MAX_NAMED]),
            "query_count": len(self.queries),
            "sentence": self.sentence(),
        }

    def sentence(self) -> str:
        """Return the change, and why it is refused, as a sentence."""
        change = f"{self.change.name} {self.change.action}"
        if not self.refusal:
            return change
        named = ", ".join(self.queries[:MAX_NAMED])
        more = len(self.queries) - MAX_NAMED
        many = f" and {more:,} more" if more > 0 else ""
        broken = f" (would break {named}{many})" if self.queries else ""
        return f"{change}: {self.refusal}{broken}"


def assess(
    old: StreamSchema,
    new: StreamSchema,
    readers: Sequence[SchemaReader],
    schemas: Mapping[int, StreamSchema],
    stream: int,
    retired: Mapping[str, str] | None = None,
) -> list[Assessed]:
    """Return every change from a schema to another, with what speaks against it.

    `schemas`: of all streams that the readers read, as they are.
    """
    assessments = []
    for change in changes_between(old, new, retired):
        broken = _broken(old, new, change, readers, schemas, stream)
        refusal = change.refusal or (_READ if broken else "")
        why = next(iter(broken.values()), "")
        assessments.append(Assessed(change, refusal, tuple(broken) if refusal else (), why))
    if assessments and not any(assessed.refusal for assessed in assessments):
        together = affected(readers, schemas, stream, new)
        if together:
            change = SchemaChange("columns", "changed", "all changes together")
            why = next(iter(together.values()))
            assessments.append(Assessed(change, _TOGETHER, tuple(together), why))
    return assessments


def _broken(
    old: StreamSchema,
    new: StreamSchema,
    change: SchemaChange,
    readers: Sequence[SchemaReader],
    schemas: Mapping[int, StreamSchema],
    stream: int,
) -> dict[str, str]:
    """Return the queries that one change would break, if it were the only one."""
    if change.action == "set":
        every = {reader.name: "its windows follow the event time" for reader in readers}
        return every if change.name == EVENT_TIME else {}
    if change.refusal and change.action != "added":
        # A change that cannot be stands for the loss of the column: what reads it is named.
        single = without_column(old, change.name)
    else:
        single = applied(old, new, change)
    return {} if single is None else affected(readers, schemas, stream, single)
