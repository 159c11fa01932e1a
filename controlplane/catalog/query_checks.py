"""Checks of submitted queries: all faults of a query at once, by field, with places in its text."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from controlplane.catalog import names
from controlplane.errors import Fields
from controlplane.queries.key_groupings import key_grouping_faults
from controlplane.queries.spec import DECLARED, MAX_STREAMS, QuerySpec
from controlplane.wire.language.errors import Place, place_of, reworded
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import BadQuery, Computation, computation_of, is_join, usable_columns
from controlplane.wire.query_text import QueryText

# What the field of a text is called among the fields of a query.
PREFIX: Final = "text."
MAX_NAME: Final = 60
# The settings of a query that can change while it is live, within declared bounds.
RETENTION: Final = ("retention_s", "retention_windows")
WEIGHT: Final = "shedding_weight"
FLOOR: Final = "shedding_floor"

# Which side of a pair a fault is of: on.0.left.
_SIDE: Final = re.compile(r"(on\.\d+)\.(left|right)")


@dataclass(frozen=True)
class Checked:
    """What is wrong with a query by field, and what it computes where that much is right.

    `usable`: the columns that its expressions may use besides its own.
    """

    fields: Fields
    computation: Computation | None
    usable: Mapping[str, Kind]


class QueryChecks:
    """The checks of some queries of a cluster, one after the other.

    What queries compute alike is checked once.
    """

    def __init__(
        self,
        streams: Mapping[str, int],
        live: Collection[str],
        columns_of: Callable[[Sequence[str]], Mapping[str, Kind]],
    ) -> None:
        """Take the ids of streams and the names of live queries, as far as the queries name them.

        `columns_of`: returns the columns that all of these streams have.
        """
        self._streams = streams
        self._taken = set(live)
        self._columns_of = columns_of
        self._now = timezone.now()
        self._computed: dict[Any, Checked] = {}

    def check_query(self, spec: QuerySpec) -> Checked:
        """Return all that is wrong with the next query; its name is taken from now on."""
        computed = self._compute(spec)
        own_faults = self._faults(spec)
        # Errors of the streams of a side cause its other errors.
        faults = own_faults | computed.fields | own_faults
        if spec.name in self._taken:
            faults.setdefault("name", []).append(f"A live query is called {spec.name} already")
        self._taken.add(spec.name)
        is_wrong = any(field == "tasks" or field.startswith(PREFIX) for field in faults)
        computation = None if is_wrong else computed.computation
        return Checked(faults, computation, computed.usable)

    def _compute(self, spec: QuerySpec) -> Checked:
        """Return what is wrong with a query's text, but for the names of its streams."""
        left, right = self._columns_of(spec.streams), self._columns_of(spec.right)
        # A right side counts by being there, and by the streams that it leaves out.
        key = (spec.text.to_text(), spec.tasks, tuple(left.items()), tuple(right.items()),
               tuple(spec.right))  # fmt: skip
        if key not in self._computed:
            text = resolved_text(spec, self._streams)
            faults, computation = _computation(text, spec.tasks, left, right)
            self._computed[key] = Checked(faults, computation, usable_columns(text, left, right))
        return self._computed[key]

    def _faults(self, spec: QuerySpec) -> Fields:
        """Return what is wrong with all but the text."""
        by_field = {
            "name": names.faults(spec.name),
            "streams": self._stream_faults(spec),
            "ends_at": _end_faults(spec.ends_at, self._now),
            f"{PREFIX}right": self._right_faults(spec),
        }
        faults = {field: faults for field, faults in by_field.items() if faults}
        faults |= setting_faults(
            {name: getattr(spec, name) for name in (*RETENTION, WEIGHT, FLOOR)}
        )
        return faults | key_grouping_faults(
            spec.key_grouping, spec.key_grouping_parameters, spec.tasks, joins=bool(spec.right)
        )

    def _stream_faults(self, spec: QuerySpec) -> list[str]:
        if not 1 <= len(spec.streams) <= MAX_STREAMS:
            return [f"Name 1 to {MAX_STREAMS} streams, not {len(spec.streams)}"]
        return self._named_faults(spec.streams)

    def _named_faults(self, streams: Sequence[str]) -> list[str]:
        doubled = sorted(name for name, count in Counter(streams).items() if count > 1)
        unknown = [name for name in streams if name not in self._streams]
        faults = [f"There is no stream {name[:100]}" for name in dict.fromkeys(unknown)]
        return faults + [f"{name[:100]} is named twice" for name in doubled]

    def _right_faults(self, spec: QuerySpec) -> list[str]:
        if not spec.right:
            return []
        if len(spec.reads) > MAX_STREAMS:
            return [f"At most {MAX_STREAMS} streams on both sides, not {len(spec.reads)}"]
        both = [name for name in dict.fromkeys(spec.right) if name in spec.streams]
        if both and len(both) == len(set(spec.streams)):
            return ["Leaves no stream for the left side: a stream is on one side only"]
        faults = [f"{name[:100]} is on the left side already" for name in both]
        return self._named_faults(spec.right) + faults


def resolved_text(spec: QuerySpec, streams: Mapping[str, int]) -> QueryText:
    """Return the text with the streams of its right side by id, 0 for one that there is not."""
    return replace(spec.text, right=[streams.get(name, 0) for name in spec.right])


def setting_faults(values: Mapping[str, float]) -> Fields:
    """Return the faults of settings that are not within their declared bounds, by field."""
    faults: Fields = {}
    for name, value in values.items():
        facts = DECLARED.facts(name)
        if not facts["ge"] <= value <= facts["le"]:
            bounds = f"Must be {facts['ge']:,} to {facts['le']:,} {facts.get('unit', '')}"
            faults[name] = [bounds.rstrip()]
    return faults


def _end_faults(ends_at: datetime | None, now: datetime) -> list[str]:
    if ends_at is None:
        return []
    if timezone.is_naive(ends_at):
        return ["Give a time zone"]
    return [] if ends_at > now else ["Must be in the future"]


def _computation(
    text: QueryText, tasks: int, left: Mapping[str, Kind], right: Mapping[str, Kind]
) -> tuple[Fields, Computation | None]:
    """Return the faults of a text over the columns of each side, or its computation.

    A fault of one side of a pair names the side, under the pair: text.on.0.
    """
    faults = _bounds(text) | _tasks_faults(tasks, keyed=bool(text.key) or is_join(text))
    try:
        return faults, computation_of(text, left, right)
    except BadQuery as bad:
        for named, why in bad.fields.items():
            field, fault = _of_pair(named, why)
            known = faults.setdefault(PREFIX + field, [])
            known += [] if fault in known else [fault]
    return faults, None


def _tasks_faults(tasks: int, *, keyed: bool) -> Fields:
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
        return ["Is not a name: letters, digits and _ only"]
    return [f"The key has a column {name} already"] if name in text.key else []
