"""The form of a query: parsing, checks, and faults by field."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from controlplane.catalog.query_checks import PREFIX, Checked
from controlplane.errors import Fields, Invalid
from controlplane.models import Cluster
from controlplane.queries.key_groupings import PARAMETERS
from controlplane.queries.spec import DECLARED, Declaration, QueryField, QuerySpec
from controlplane.topology import queries
from controlplane.wire.language.errors import place_of
from controlplane.wire.language.grammar import written
from controlplane.wire.language.tree import NUMBERS
from controlplane.wire.query import SIDES, STREAM
from controlplane.wire.query_text import QueryText
from dashboard.forms import Reader, moment, number_or, optional, read_some, whole_or, words_of
from dashboard.queries.key_grouping_forms import parameter_title, parameters_of
from dashboard.queries.retention_forms import retention_of, retention_values

# The values of a new form: the declared defaults, and a text to begin with.
DEFAULTS: Final = {
    "key": "stream",
    "aggregates": "records = count(*)",
    "window": f"{QueryText.window_s:g}",
    "lateness": f"{QueryText.lateness_s:g}",
    "tasks": str(QuerySpec.tasks),
    "shedding_weight": f"{QuerySpec.shedding_weight:g}",
    "shedding_floor": f"{QuerySpec.shedding_floor:g}",
    **retention_values(QuerySpec.retention_s, QuerySpec.retention_windows),
}
# A name, then the first = that is not a part of another sign.
_NAMED: Final = re.compile(r"\s*([^\s=<>!]+)\s*=(?!=)(.*)", re.DOTALL)
# The aggregates of a column that the form offers at a click.
_SUMMARY: Final = ("mean", "min", "max")
# What stands between the sides of a pair; no expression has it but within a text or a name.
PAIRED: Final = "<->"
# Linear: possessive, and a text without its closing quote ends with the line.
_PAIRED_OR_QUOTED: Final = re.compile(rf"{PAIRED}|'(?:[^']|'')*+(?:'|\Z)|\"[^\"]*+(?:\"|\Z)")


@dataclass(frozen=True)
class FormFault:
    """A fault in the form: what it is of in the field, the reason, and the line.

    `is_title`: True if `of` is a title, False if it is a name as written in the field.
    """

    of: str
    why: str
    line: str = ""
    marks: str = ""
    is_title: bool = False


def spec_of(cluster: Cluster, values: Mapping[str, str]) -> QuerySpec:
    """Return the query that a form describes.

    Raises `Invalid` where some of it is not a value, then with all other faults as well.
    """
    spec, faults = parsed(values)
    if faults:
        raise Invalid(queries.checked(cluster, spec, is_draft=False).fields | faults)
    return spec


def checked(cluster: Cluster, values: Mapping[str, str], *, is_draft: bool = True) -> Checked:
    """Check a form: return its faults, or its computation; a draft may be incomplete."""
    spec, faults = parsed(values)
    result = queries.checked(cluster, spec, is_draft=is_draft)
    return Checked(result.fields | faults, None if faults else result.computation, result.usable)


def usable(checked: Checked, streams: str) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the available columns with their kinds, by their source.

    `streams` is the form's field: while it is empty, the columns are those of any stream.
    """
    columns = [
        (name, f"{kind}, its id in the log" if name.rpartition(".")[2] == STREAM else str(kind))
        for name, kind in checked.usable.items()
    ]
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
    own = (f"{word}_{name} = {word}({written(column)})" for word in _SUMMARY)
    return "\n".join(["records = count(*)", *own])


def parsed(values: Mapping[str, str]) -> tuple[QuerySpec, Fields]:
    """Return the query that the form describes, and what of it is not a value and left out."""
    faults: Fields = {}
    text = {item.name: _value(item, values, faults) for item in DECLARED.text}
    right = text.pop("right")
    read = {item.name: _value(item, values, faults) for item in DECLARED.fields if _is_read(item)}
    read[PARAMETERS], parameter_faults = parameters_of(values)
    kept = QuerySpec.retention_s, QuerySpec.retention_windows
    retention_s, retention_windows, form_faults = retention_of(values, kept)
    spec = QuerySpec(
        **read,
        text=QueryText(**text),
        right=right,
        retention_s=retention_s,
        retention_windows=retention_windows,
    )
    return spec, faults | parameter_faults | form_faults


def field_groups(declaration: Declaration = DECLARED) -> dict[str, list[QueryField]]:
    """Return the declared fields by their group in the form.

    Fields of no declared group are numbers or expressions; required ones are the last.
    """
    groups: dict[str, list[QueryField]] = {"join": [], "expressions": [], "numbers": []}
    for item in (*declaration.text, *declaration.fields):
        kind = "numbers" if item.kind in _NUMBERS else "expressions"
        groups.setdefault(item.facts.get("group", kind), []).append(item)
    return {name: sorted(group, key=attrgetter("is_required")) for name, group in groups.items()}


def _is_read(item: QueryField) -> bool:
    """Return True for a field with one input; a retention has two, parameters have several."""
    return item.name not in ("text", PARAMETERS) and item.facts.get("group") != "retention"


def shown_fields(
    values: Mapping[str, str], faults: Mapping[str, Sequence[FormFault]]
) -> dict[str, list[dict[str, Any]]]:
    """Return the fields that the form shows in groups, with their values and faults."""
    return {
        name: [
            {
                "name": item.option,
                "title": item.title,
                "note": _note(item),
                "hint": item.facts["description"],
                "placeholder": item.facts.get("placeholder", ""),
                "lists_streams": item.facts.get("lists_streams", False),
                "is_line": item.kind == Sequence[str] and not item.facts.get("lists_streams"),
                "is_short": not item.is_required,
                "value": values.get(item.option, ""),
                "faults": faults.get(item.option, ()),
            }
            for item in group
        ]
        for name, group in field_groups().items()
    }


def _note(item: QueryField) -> str:
    """Return how a value is written: the unit of a number, or the notation of a list."""
    return str(
        _NOTATIONS.get(item.kind) or (item.kind in _NUMBERS and item.facts.get("unit")) or ""
    )


def form_faults(fields: Fields, grouping: str = "") -> dict[str, list[FormFault]]:
    """Return the faults by field of the form; those of all its other fields are left out.

    `grouping`: the chosen key grouping, whose parameters have their titles.
    """
    by_field: dict[str, list[FormFault]] = {field: [] for field in FIELDS.values()}
    for name, messages in fields.items():
        field, of = _field(name)
        if field == PARAMETERS and of:
            title = parameter_title(grouping, of)
            by_field[field] += [FormFault(title, why, is_title=True) for why in messages]
        elif field in by_field:
            by_field[field] += [_form_fault(of, fault) for fault in messages]
    return by_field


def labels(fields: Iterable[str]) -> list[str]:
    """Return the labels of the form's fields."""
    titles = {item.option: item.title.lower() for item in _SHOWN}
    return [titles[field] for field in fields]


def _field(name: str) -> tuple[str, str]:
    if name in FIELDS:
        return FIELDS[name], ""
    # text.columns.kmh is the column kmh of the field columns.
    field, _, of = name.removeprefix(PREFIX).partition(".")
    if field == PARAMETERS:
        return field, of
    if not name.startswith(PREFIX):
        return "", ""
    return field, f"pair {int(of) + 1}" if field == "on" else of


def _form_fault(of: str, fault: str) -> FormFault:
    place = place_of(fault)
    return FormFault(of, fault) if place is None else FormFault(of, fault, place.line, place.marks)


def _value(item: QueryField, values: Mapping[str, str], faults: Fields) -> Any:
    """Return the value of a field, its default for a text that is not a value."""
    if item.kind in _LINES:
        return _LINES[item.kind](item, values.get(item.option, ""), faults)
    text = {item.path: values.get(item.option, "")}
    given, wrong = read_some(text, {item.path: _reader(item)})
    faults |= wrong
    return given.get(item.path, QueryText.window_s if item.is_required else item.default)


def _reader(item: QueryField) -> Reader:
    seconds = number_or("Must be a number of seconds")
    if item.kind is float and "unit" in item.facts:
        return seconds
    return {
        int: whole_or("Must be a whole number"),
        float: optional(number_or("Must be a number"), item.default),
        float | None: optional(seconds),
        datetime | None: optional(moment),
        Sequence[str]: words_of,
    }.get(item.kind, str)


def _named(item: QueryField, text: str, faults: Fields) -> dict[str, str]:
    """Return the expressions by name."""
    expressions: dict[str, str] = {}
    for number, line in _entries(text):
        match = _NAMED.fullmatch(line)
        if match is None:
            fault = f"Line {number}: write name = expression"
        elif match[1] in expressions:
            fault = f"Line {number}: {match[1]} is named twice"
        else:
            expressions[match[1]] = match[2].strip()
            continue
        faults.setdefault(item.path, []).append(fault)
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


def _pairs(item: QueryField, text: str, faults: Fields) -> list[list[str]]:
    """Return the pairs of a join; a line that is none keeps its place among them."""
    pairs = [_sides(line) for _, line in _entries(text)]
    for index, sides in enumerate(pairs):
        if len(sides) != len(SIDES) or not all(sides):
            faults[f"{item.path}.{index}"] = [f"Write left {PAIRED} right, once in a line"]
    return pairs


def _sides(line: str) -> list[str]:
    """Return what stands between the signs; one within quotes is part of a text."""
    cuts = [match.span() for match in _PAIRED_OR_QUOTED.finditer(line) if match[0] == PAIRED]
    begins, ends = [0, *(end for _, end in cuts)], [*(begin for begin, _ in cuts), len(line)]
    return [line[begin:end].strip() for begin, end in zip(begins, ends, strict=True)]


_NUMBERS: Final = (int, float, float | None)
_NOTATIONS: Final[Mapping[Any, str]] = {
    Mapping[str, str]: "name = expression, one per line",
    Sequence[Sequence[str]]: f"left {PAIRED} right, one pair per line",
}
_LINES: Final[Mapping[Any, Callable[[QueryField, str, Fields], Any]]] = {
    Sequence[Sequence[str]]: _pairs,
    Mapping[str, str]: _named,
}
_GROUPS: Final = field_groups()
_SHOWN: Final = [
    item for name in ("join", "expressions", "numbers", "choice") for item in _GROUPS[name]
]
# The fields of the form by their paths in a request, in the order of the form.
FIELDS: Final = {item.path: item.option for item in _SHOWN}
