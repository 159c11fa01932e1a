"""What queries compute: rows and their text to the wire's checked values.

The data plane reads the columns of `blocks.KINDS` and no others. A stream whose declared schema
names some of them offers those alone; one that declares none of them, or nothing, offers them all.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from controlplane.models import Query
from controlplane.wire.blocks import KINDS
from controlplane.wire.language.tree import Kind
from controlplane.wire.query import EVENT_TIME, STREAM, Computation, QueryText, computation_of

# Texts of one process; equal texts are parsed once.
KEPT = 1024


def kinds_of(schemas: Iterable[Mapping[str, Any]]) -> dict[str, Kind]:
    """Return the columns that all streams with these declared schemas have, with their kinds."""
    names = set(KINDS)
    for schema in schemas:
        declared = set(schema) & set(KINDS)
        names &= declared | {EVENT_TIME} if declared else set(KINDS)
    return {name: kind for name, kind in KINDS.items() if name in names}


def text_of(query: Query) -> QueryText:
    """Return the text of a query."""
    return QueryText.from_json(json.loads(query.text))


def right_of(query: Query) -> frozenset[int]:
    """Return the ids of the streams on the right side of a join, none for any other query."""
    return frozenset(json.loads(query.text).get("right", ()))


def stored(text: QueryText) -> str:
    """Return the one way to write a text: what is kept, and what the data plane gets."""
    return json.dumps(text.to_json(), separators=(",", ":"), ensure_ascii=False)


def computation_of_query(query: Query) -> Computation:
    """Return what a query computes. Raises `BadQuery` where a function it calls is gone."""
    return computation_of_text(query.text)


@lru_cache(maxsize=KEPT)
def computation_of_text(text: str) -> Computation:
    """Return what a stored text computes. Raises `BadQuery` where a function it calls is gone."""
    return computation_of(QueryText.from_json(json.loads(text)), KINDS)


def keyed_by_stream(computation: Computation) -> bool:
    """Tell whether the key holds the stream itself, which is shown by its name."""
    return any(name == STREAM for name, _ in computation.key)
