"""Report of an application, and places of errors in the document."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from algorithms.strict_json import place_of
from controlplane.cluster_spec.document import BadDescription
from controlplane.cluster_spec.validation import Path
from controlplane.errors import Invalid

T = TypeVar("T")
# What a service calls otherwise than a document does.
_NAMES: Final[Mapping[str, str]] = {"expires_at": "until"}


@dataclass(frozen=True)
class Difference:
    """A field of a row before and after; the name is "" for the cluster and its policy."""

    part: str
    name: str
    field: str
    before: Any
    after: Any


@dataclass
class ApplyReport:
    """The changes by part: names of rows, and of changed ones the fields.

    `left`: objects that were not changed, and why.
    """

    cluster: str
    new: bool
    applied: bool
    created: dict[str, list[str]] = field(default_factory=dict)
    changed: dict[str, list[str]] = field(default_factory=dict)
    removed: dict[str, list[str]] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    placed: int = 0

    @property
    def changes(self) -> int:
        """Return the number of created, changed or removed rows."""
        parts = [*self.created.values(), *self.changed.values(), *self.removed.values()]
        return int(self.new) + sum(map(len, parts))


def count_text(count: int, noun: str, several: str) -> list[str]:
    """Return a sentence with a count, "" for zero."""
    if not count:
        return []
    return [f"{count:,} {noun if count == 1 else several}"]


@contextmanager
def errors_at(part: str, places: Sequence[int] = ()) -> Iterator[None]:
    """Translate `Invalid` into `BadDescription` with places in the document."""
    try:
        yield
    except Invalid as invalid:
        faults = {path_of(part, name): messages for name, messages in invalid.fields.items()}
        for row, fields in invalid.rows.items():
            faults |= {
                path_of(part, places[row], name): messages for name, messages in fields.items()
            }
        raise BadDescription(faults) from None


def apply_each(part: str, rows: Iterable[tuple[int, T]], make: Callable[[T], object]) -> None:
    """Call a function for each row, and raise the errors of all rows with their places.

    Raises `BadDescription`.
    """
    faults: dict[str, list[str]] = {}
    for index, row in rows:
        try:
            make(row)
        except Invalid as invalid:
            fields = invalid.fields.items()
            faults |= {
                path_of(part, index, _NAMES.get(name, name)): field for name, field in fields
            }
    if faults:
        raise BadDescription(faults)


def path_of(*parts: int | str) -> str:
    """Return the place of a field in the document: text.on.0 is text.on[0]."""
    path: Path = ()
    for part in parts:
        steps = str(part).split(".") if isinstance(part, str) else [part]
        path += tuple(int(step) if str(step).isdigit() else step for step in steps)
    return place_of(path)
