"""Checks of a query's text: all faults by field, with their places in the text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controlplane.errors import Fields, Invalid
from controlplane.queries.spec import DECLARED
from controlplane.wire.language.errors import Place, place_of, reworded
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import BadQuery, Computation, computation_of, is_join
from controlplane.wire.query_text import QueryText

# What the field of a text is called among the fields of a query.
PREFIX: Final = "text."
MAX_NAME: Final = 60
# The kind of a column of top_k.
_LISTED: Final = "list of values with counts"

# Which side of a pair a fault is of: on.0.left.
_SIDE: Final = re.compile(r"(on\.\d+)\.(left|right)")


@dataclass(frozen=True)
class OutputColumn:
    """A column of the results: `role` is key or aggregate, `kind` one of the language's."""

    name: str
    kind: str
    role: str


def checked(
    text: QueryText,
    tasks: int,
    kinds: Mapping[str, Kind],
    right: Mapping[str, Kind] | None = None,
) -> Computation:
    """Return the computation of a text over columns of these kinds. Raises `Invalid`, all faults.

    `right`: the columns of a join's right side, where they are not those of the left. A fault of
    one side of a pair names the side, under the pair: text.on.0.
    """
    faults = _bounds(text) | tasks_faults(tasks, keyed=bool(text.key) or is_join(text))
    try:
        computation = computation_of(text, kinds, right)
    except BadQuery as bad:
        for named, why in bad.fields.items():
            field, faults_by_field = _of_pair(named, why)
            known = faults.setdefault(PREFIX + field, [])
            known += [] if faults_by_field in known else [faults_by_field]
        raise Invalid(faults) from None
    if faults:
        raise Invalid(faults)
    return computation


def output_columns(computation: Computation) -> list[OutputColumn]:
    """Return the columns of the results: the key, then the aggregates."""
    keys = [OutputColumn(name, str(expression.kind), "key") for name, expression in computation.key]
    values = [OutputColumn(n, _LISTED if a.function == "top_k" else str(a.kind), "aggregate")
              for n, a in computation.aggregates]  # fmt: skip
    return keys + values


def tasks_faults(tasks: int, *, keyed: bool) -> Fields:
    """Return the faults of a number of tasks as messages."""
    facts = DECLARED.facts("tasks")
    if not facts["ge"] <= tasks <= facts["le"]:
        return {"tasks": [f"Must be {facts['ge']} to {facts['le']:,}, not {tasks:,}"]}
    if tasks > 1 and not keyed:
        return {"tasks": ["Must be 1 without a key: it is the key that is split"]}
    return {}


def places(fields: Fields) -> dict[str, Place]:
    """Return the places of the first faults by field, if they have a place."""
    by_field = {field: place_of(faults[0]) for field, faults in fields.items() if faults}
    return {field: place for field, place in by_field.items() if place is not None}


def _of_pair(field: str, why: str) -> tuple[str, str]:
    """Return field and sentence; faults of one side of a pair belong to the pair."""
    side = _SIDE.fullmatch(field)
    if side is None:
        return field, reworded(why, why[:1].upper() + why[1:])
    return side[1], reworded(why, f"On the {side[2]}, {why}")


def _bounds(text: QueryText) -> Fields:
    """Return the values above a declared maximum; the language reports those below a minimum."""
    faults: Fields = {}
    for item in DECLARED.text:
        value, most = getattr(text, item.name), item.facts.get("max_length")
        if most is not None and len(value) > most:
            counted = f"{most} {item.facts.get('unit', '')}".rstrip()
            faults[item.path] = [f"At most {counted}, not {len(value):,}"]
        if isinstance(value, Mapping):
            for name in value:
                if messages := _name_faults(item.name, name, text):
                    faults[f"{item.path}.{name[:MAX_NAME]}"] = messages
        if value is not None and "le" in item.facts and value > item.facts["le"]:
            faults[item.path] = [f"At most {item.facts['le']:,} {item.facts['unit']}"]
    return faults


def _name_faults(field: str, name: str, text: QueryText) -> list[str]:
    if len(name) > MAX_NAME:
        return [f"A name has at most {MAX_NAME} characters"]
    if field == "columns":
        return []  # the language checks characters and duplicates of names
    if not name.isidentifier():
        return ["Is no name: letters, digits and _ only"]
    return [f"The key has a column {name} already"] if name in text.key else []
