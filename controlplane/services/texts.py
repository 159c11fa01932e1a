"""Whether a query's text can run: every fault at once, each with its place in the text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.errors import Fields, Invalid
from controlplane.wire.language.tree import Call, Expression, Kind
from controlplane.wire.query import BadQuery, Computation, QueryText, computation_of

# What the field of a text is called among the fields of a query.
PREFIX: Final = "text."
MOST_NAMED: Final = 64
MOST_KEYS: Final = 8
MAX_NAME: Final = 60
MAX_SECONDS: Final = 7 * 86_400
MAX_TASKS: Final = 1024
# Columns may name each other, so that a short text can stand for an endless expression.
MOST_OPERATIONS: Final = 5_000
DEEPEST: Final = 100

_AT_CHARACTER: Final = re.compile(r", at character (\d+)$")


@dataclass(frozen=True)
class OutputColumn:
    """A column of the results: `role` is key or aggregate, `kind` one of the language's."""

    name: str
    kind: str
    role: str


@dataclass(frozen=True)
class Pointed:
    """A fault taken apart: why, and the line with marks below it where it has a place.

    `character` counts from 1 in the text of its field, 0 without a place.
    """

    why: str
    line: str = ""
    marks: str = ""
    character: int = 0


def checked(text: QueryText, tasks: int, kinds: Mapping[str, Kind]) -> Computation:
    """Return what the text computes over columns of these kinds. Raises `Invalid`, all faults."""
    faults = _bounds(text) | tasks_faults(tasks, keyed=bool(text.key))
    computation = None
    try:
        computation = computation_of(text, kinds)
    except BadQuery as bad:
        for field, why in bad.fields.items():
            faults.setdefault(PREFIX + field, []).append(_sentence(why))
    except RecursionError:
        faults.setdefault(f"{PREFIX}aggregates", []).append("An expression is nested too deeply")
    if computation is not None:
        faults |= _sizes(computation)
    if faults or computation is None:
        raise Invalid(faults)
    return computation


def output_columns(computation: Computation) -> list[OutputColumn]:
    """Return the columns of the results: the key, then the aggregates."""
    keys = [OutputColumn(name, str(one.kind), "key") for name, one in computation.key]
    values = [OutputColumn(n, _kind_of(a.function, a.kind), "aggregate")
              for n, a in computation.aggregates]  # fmt: skip
    return keys + values


def tasks_faults(tasks: int, *, keyed: bool) -> Fields:
    """Return what is wrong with a number of tasks."""
    if not 1 <= tasks <= MAX_TASKS:
        return {"tasks": [f"Must be 1 to {MAX_TASKS:,}, not {tasks:,}"]}
    if tasks > 1 and not keyed:
        return {"tasks": ["Must be 1 without a key: it is the key that is split"]}
    return {}


def pointed(fault: str) -> Pointed:
    """Take a fault apart that `checked` told."""
    why, _, place = fault.partition("\n")
    line, _, marks = place.rpartition("\n")
    if not marks.strip(" ") or marks.strip(" ^"):
        return Pointed(fault)
    found = _AT_CHARACTER.search(why)
    return Pointed(_AT_CHARACTER.sub("", why), line, marks, int(found[1]) if found else 0)


def places(fields: Fields) -> dict[str, Pointed]:
    """Return where the faults stand, of those fields whose first fault has a place."""
    found = {field: pointed(faults[0]) for field, faults in fields.items() if faults}
    return {field: one for field, one in found.items() if one.marks}


def _kind_of(function: str, kind: Kind) -> str:
    return "list of values with counts" if function == "top_k" else str(kind)


def _sentence(why: str) -> str:
    return why[:1].upper() + why[1:]


def _bounds(text: QueryText) -> Fields:
    faults: Fields = {}
    for field, named in (("columns", text.columns), ("aggregates", text.aggregates)):
        if len(named) > MOST_NAMED:
            faults[PREFIX + field] = [f"At most {MOST_NAMED}, not {len(named):,}"]
        for name in named:
            if told := _name_faults(field, name, text):
                faults[f"{PREFIX}{field}.{name[:MAX_NAME]}"] = told
    if len(text.key) > MOST_KEYS:
        faults[f"{PREFIX}key"] = [f"At most {MOST_KEYS} columns, not {len(text.key):,}"]
    for field in ("window_s", "slide_s", "lateness_s"):
        seconds = getattr(text, field)
        if seconds is not None and seconds > MAX_SECONDS:
            faults[PREFIX + field] = [f"At most {MAX_SECONDS:,} seconds"]
    return faults


def _name_faults(field: str, name: str, text: QueryText) -> list[str]:
    if len(name) > MAX_NAME:
        return [f"A name has at most {MAX_NAME} characters"]
    if field == "columns":
        return []  # the language says what it takes for the name of a column
    if not name.isidentifier():
        return ["Is no name: letters, digits and _ only"]
    return [f"The key has a column {name} already"] if name in text.key else []


def _sizes(computation: Computation) -> Fields:
    for field, expression in _expressions(computation):
        operations, depth = _size(expression, {})
        if operations > MOST_OPERATIONS or depth > DEEPEST:
            told = "Stands for too large an expression once the columns it names are put in"
            return {PREFIX + field: [told]}
    return {}


def _expressions(computation: Computation) -> Iterator[tuple[str, Expression]]:
    if computation.where is not None:
        yield "where", computation.where
    for _, expression in computation.key:
        yield "key", expression
    for name, aggregate in computation.aggregates:
        if aggregate.argument is not None:
            yield f"aggregates.{name}", aggregate.argument


def _size(expression: Expression, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return how many operations an expression has and how deep it is; equal parts by identity."""
    if id(expression) in known:
        return known[id(expression)]
    below = [_size(one, known) for one in _parts(expression)]
    found = 1 + sum(size for size, _ in below), 1 + max((deep for _, deep in below), default=0)
    known[id(expression)] = found
    return found


def _parts(expression: Expression) -> tuple[Expression, ...]:
    return expression.arguments if isinstance(expression, Call) else ()
