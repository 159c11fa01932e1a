"""Differences between two descriptions of one cluster: rows that are new, changed or removed."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from controlplane.cluster_spec.connection_parts import DocumentPart
from controlplane.cluster_spec.document import ClusterDescription
from controlplane.cluster_spec.report import ApplyReport, Difference


@dataclass(frozen=True)
class _List:
    """What identifies a row of a part, and its name for people."""

    key: Callable[[Any], Any]
    name: Callable[[Any], str]


def _named(row: Any) -> str:
    return str(row.name)


_LISTS: Final[Mapping[str, _List]] = {
    "nodes": _List(lambda row: row.index, _named),
    "streams": _List(_named, _named),
    "queries": _List(_named, _named),
    "drops": _List(lambda row: row.edge, lambda row: " to ".join(filter(None, row.edge))),
    "sinks": _List(lambda row: (row.query, row.name), lambda row: f"{row.query}/{row.name}"),
    "blackouts": _List(lambda row: row.period, lambda row: str(row.reason)),
    "exclusions": _List(lambda row: row.about, lambda row: " ".join(row.about)),
    "ladder": _List(lambda _: 0, lambda row: f"{len(row.rungs)} drop levels"),
}


def note_differences(
    report: ApplyReport, before: ClusterDescription, after: ClusterDescription
) -> None:
    """Add to a report what has changed between two descriptions, field by field.

    Without where queries run, and without measured rates: the pipeline changes them.
    """
    for part in ("cluster", "policy"):
        for difference in _fields(part, "", getattr(before, part), getattr(after, part)):
            report.differences.append(difference)
            report.changed.setdefault(part, []).append(difference.field)
    for part, rows in _LISTS.items():
        old, new = _keyed(rows, getattr(before, part)), _keyed(rows, getattr(after, part))
        for key, row in new.items():
            if key not in old:
                report.created.setdefault(part, []).append(rows.name(row))
            elif fields := list(_fields(part, rows.name(row), old[key], row)):
                report.differences += fields
                report.changed.setdefault(part, []).append(rows.name(row))
        if removed := [rows.name(row) for key, row in old.items() if key not in new]:
            report.removed[part] = removed


def _keyed(rows: _List, value: Any) -> dict[Any, DocumentPart]:
    """Return rows by what identifies them, equal ones by their number, too."""
    listed: Sequence[Any] = value if isinstance(value, list) else [value] if value else []
    seen: Counter[Any] = Counter()
    keyed = {}
    for row in listed:
        key = rows.key(row)
        keyed[key, seen[key]] = row
        seen[key] += 1
    return keyed


def _fields(part: str, name: str, old: DocumentPart, new: DocumentPart) -> Iterator[Difference]:
    if old == new:
        return
    values = [row.model_dump(mode="json", by_alias=True) for row in (old, new)]
    for row in values if part == "streams" else ():
        row.pop("rate")
    for field, before, after in _changes("", *values):
        yield Difference(part, name, field, before, after)


def _changes(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the places at which two JSON values differ, each with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            below = f"{path}.{key}" if path else str(key)
            yield from _changes(below, old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, pair in enumerate(zip(old, new, strict=True)):
            yield from _changes(f"{path}[{index}]", *pair)
    elif old != new:
        yield path, old, new
