"""The form of a query: parsing, checks, and faults by field."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.catalog.query_text import PREFIX
from controlplane.errors import Fields, Invalid
from controlplane.models import Cluster
from controlplane.models.query import DEFAULT_RETENTION_S, DEFAULT_RETENTION_WINDOWS
from controlplane.topology import queries
from controlplane.topology.queries import Checked, QuerySpec
from controlplane.wire.language.errors import place_of
from controlplane.wire.language.tree import NUMBERS
from controlplane.wire.query import DEFAULT_LATENESS_S, SIDES, STREAM, QueryText
from dashboard.forms import moment, stream_names
from dashboard.queries.retention_forms import retention_of, retention_values

# The fields of the form by what the services call them, in the order of the form.
FIELDS: Final = {
    "text.right": "right",
    "text.on": "on",
    "text.where": "where",
    "text.columns": "columns",
    "text.key": "key",
    "text.aggregates": "aggregates",
    "text.window_s": "window",
    "text.slide_s": "slide",
    "text.lateness_s": "lateness",
    "tasks": "tasks",
    "key_grouping": "key_grouping",
}
DEFAULTS: Final = {
    "key": "stream",
    "aggregates": "records = count(*)",
    "window": "60",
    "lateness": f"{DEFAULT_LATENESS_S:g}",
    "tasks": "1",
    **retention_values(DEFAULT_RETENTION_S, DEFAULT_RETENTION_WINDOWS),
}
# Fields that are called otherwise than they are labelled.
_LABELS: Final = {
    "right": "right streams",
    "on": "equal on both sides",
    "key_grouping": "key grouping",
}
# A name, then the first = that is no part of another sign.
_NAMED: Final = re.compile(r"\s*([^\s=<>!]+)\s*=(?!=)(.*)", re.DOTALL)
# The aggregates of a column that the form offers at a click.
_SUMMARY: Final = ("mean", "min", "max")
# What stands between the sides of a pair; no expression has it but within a text or a name.
PAIRED: Final = "<->"
_PAIRED_OR_QUOTED: Final = re.compile(rf"{PAIRED}|'(?:[^']|'')*'|\"[^\"]*\"")


@dataclass(frozen=True)
class FormFault:
    """A fault in the form: its name in the field, the reason, and the line."""

    of: str
    why: str
    line: str = ""
    marks: str = ""


def spec_of(cluster: Cluster, values: Mapping[str, str]) -> QuerySpec:
    """Return the query that a form describes.

    Raises `Invalid` where some of it is no value, then with all other faults as well.
    """
    spec, faults = parsed(values)
    if faults:
        raise Invalid(_all_faults(cluster, spec) | faults)
    return spec


def _all_faults(cluster: Cluster, spec: QuerySpec) -> Fields:
    try:
        queries.check(cluster, [spec])
    except Invalid as invalid:
        return invalid.rows[0]
    return {}


def checked(cluster: Cluster, values: Mapping[str, str]) -> Checked:
    """Check an incomplete query: return its faults, or its computation."""
    spec, faults = parsed(values)
    checked = queries.checked(cluster, spec)
    return Checked(checked.fields | faults, None if faults else checked.computation, checked.usable)


def usable(checked: Checked, streams: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the available columns with their kinds, by their source.

    `streams` is the form's field: while it is empty, the columns are those of any stream.
    """
    columns = [(name, str(kind)) for name, kind in checked.usable.items()]
    sides = zip(("Columns of the left", "Columns of the right"), SIDES, strict=True)
    title = "Columns of a record" if streams.strip() else "Columns of the streams of this cluster"
    parts = [(label, [c for c in columns if c[0].startswith(f"{side}.")]) for label, side in sides]
    return parts if any(of for _, of in parts) else [(title, columns)]


def summaries(checked: Checked) -> list[tuple[str, str, str]]:
    """Return (column, key, lines of aggregates) of each numeric column, to fill the form with."""
    return [
        (column, column.removesuffix(column.rpartition(".")[2]) + STREAM, _summary(column))
        for column, kind in checked.usable.items()
        if kind in NUMBERS and column.rpartition(".")[2] != STREAM
    ]


def _summary(column: str) -> str:
    name = column.replace(".", "_")
    lines = ["records = count(*)", *(f"{word}_{name} = {word}({column})" for word in _SUMMARY)]
    return "\n".join(lines)


def parsed(values: Mapping[str, str]) -> tuple[QuerySpec, Fields]:
    """Return the query that the form describes, and what of it is no value and left out."""
    faults: Fields = {}
    text = QueryText(
        where=values.get("where", "").strip(),
        columns=_named(values, "columns", faults),
        key=stream_names(values.get("key", "")),
        aggregates=_named(values, "aggregates", faults),
        window_s=_seconds(values, "window", faults, 60.0),
        slide_s=_seconds(values, "slide", faults, 60.0)
        if values.get("slide", "").strip()
        else None,
        lateness_s=_seconds(values, "lateness", faults, DEFAULT_LATENESS_S),
        on=_pairs(values, faults),
    )
    kept = DEFAULT_RETENTION_S, DEFAULT_RETENTION_WINDOWS
    retention_s, retention_windows, form_faults = retention_of(values, kept)
    faults |= form_faults
    spec = QuerySpec(
        name=values.get("name", "").strip(),
        streams=stream_names(values.get("streams", "")),
        ends_at=moment(values.get("ends_at", ""), faults),
        text=text,
        tasks=_whole(values.get("tasks", ""), faults),
        key_grouping=values.get("key_grouping", ""),
        right=stream_names(values.get("right", "")),
        retention_s=retention_s,
        retention_windows=retention_windows,
    )
    return spec, faults


def form_faults(fields: Fields) -> dict[str, list[FormFault]]:
    """Return the faults by field of the form; those of all its other fields are left out."""
    by_field: dict[str, list[FormFault]] = {field: [] for field in FIELDS.values()}
    for name, messages in fields.items():
        field, of = _field(name)
        if field in by_field:
            by_field[field] += [_form_fault(of, fault) for fault in messages]
    return by_field


def labels(fields: Iterable[str]) -> list[str]:
    """Return the labels of the form's fields."""
    return [_LABELS.get(field, field) for field in fields]


def _field(name: str) -> tuple[str, str]:
    if name in FIELDS:
        return FIELDS[name], ""
    # text.columns.kmh is the column kmh of the field columns.
    field, _, of = name.removeprefix(PREFIX).partition(".")
    if not name.startswith(PREFIX):
        return "", ""
    return field, f"pair {int(of) + 1}" if field == "on" else of


def _form_fault(of: str, fault: str) -> FormFault:
    place = place_of(fault)
    return FormFault(of, fault) if place is None else FormFault(of, fault, place.line, place.marks)


def _named(values: Mapping[str, str], field: str, faults: Fields) -> dict[str, str]:
    """Return the expressions by name."""
    expressions: dict[str, str] = {}
    for number, line in _entries(values.get(field, "")):
        match = _NAMED.fullmatch(line)
        if match is None:
            text = f"Line {number}: write name = expression"
        elif match[1] in expressions:
            text = f"Line {number}: {match[1]} is named twice"
        else:
            expressions[match[1]] = match[2].strip()
            continue
        faults.setdefault(PREFIX + field, []).append(text)
    return expressions


def _entries(text: str) -> list[tuple[int, str]]:
    """Return the lines by number; one that begins with a blank belongs to the one before."""
    entries: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if entries and line[:1].isspace() and line.strip():
            entries[-1] = entries[-1][0], f"{entries[-1][1]}\n{line}"
        elif line.strip():
            entries.append((number, line))
    return entries


def _pairs(values: Mapping[str, str], faults: Fields) -> list[list[str]]:
    """Return the pairs of a join; a line that is none keeps its place among them."""
    pairs = [_sides(line) for _, line in _entries(values.get("on", ""))]
    for index, sides in enumerate(pairs):
        if len(sides) != len(SIDES) or not all(sides):
            faults[f"{PREFIX}on.{index}"] = [f"Write left {PAIRED} right, once in a line"]
    return pairs


def _sides(line: str) -> list[str]:
    """Return what stands between the signs; one within quotes is part of a text."""
    cuts = [match.span() for match in _PAIRED_OR_QUOTED.finditer(line) if match[0] == PAIRED]
    begins, ends = [0, *(end for _, end in cuts)], [*(begin for begin, _ in cuts), len(line)]
    return [line[begin:end].strip() for begin, end in zip(begins, ends, strict=True)]


def _seconds(values: Mapping[str, str], field: str, faults: Fields, instead: float) -> float:
    try:
        return float(values.get(field, "").strip())
    except ValueError:
        faults[f"{PREFIX}{field}_s"] = ["Must be a number of seconds"]
        return instead


def _whole(text: str, faults: Fields) -> int:
    if text.strip().isdecimal() and len(text.strip()) <= 9:  # noqa: PLR2004 - digits of an int
        return int(text)
    faults["tasks"] = ["Must be a whole number"]
    return 1
