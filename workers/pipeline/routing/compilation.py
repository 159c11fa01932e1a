"""Compilation of routes: the computation of a query over the columns of its streams.

Columns of the streams of one side are unified by name (`schema.common_kinds`). Tables have
thousands of queries over streams of few schemas, and another version every second: what was
compiled once is looked up.
"""

import json
from collections.abc import Collection, Mapping
from functools import lru_cache

from controlplane.wire.language.tree import Kind, columns_in
from controlplane.wire.query import STREAM, BadQuery, Computation, computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.route import Route
from controlplane.wire.schema import StreamSchema, common_kinds

_KEPT = 16_384


class InvalidRoute(Exception):
    """A query cannot be computed: its streams have not the columns that it reads."""


class SchemaMissing(InvalidRoute):
    """A stream has no schema yet. It has no records either: its queries wait, and have no fault."""


def computation_of_route(route: Route, schemas: Mapping[int, StreamSchema]) -> Computation:
    """Return the computation of a route. Raises `InvalidRoute`."""
    right = _right_of(route.text)
    left = [stream for stream in route.streams if stream not in right]
    result = _compiled(route.text, _schemas_of(left, schemas), _schemas_of(right, schemas))
    if isinstance(result, str):
        raise InvalidRoute(result)
    return result


def _schemas_of(
    streams: Collection[int], schemas: Mapping[int, StreamSchema]
) -> frozenset[StreamSchema]:
    try:
        return frozenset([schemas[stream] for stream in streams])
    except KeyError as missing:
        raise SchemaMissing(f"stream {missing} has no schema: declare it") from None


@lru_cache(maxsize=_KEPT)
def _right_of(text: str) -> frozenset[int]:
    return frozenset(json.loads(text).get("right", ()))


@lru_cache(maxsize=_KEPT)
def _compiled(
    text: str, left: frozenset[StreamSchema], right: frozenset[StreamSchema]
) -> Computation | str:
    """Return the computation, or an error message."""
    try:
        kinds = _common(left), _common(right) if right else None
        return computation_of(QueryText.from_json(json.loads(text)), *kinds)
    except BadQuery as error:
        return str(error)


@lru_cache(maxsize=1024)
def _common(schemas: frozenset[StreamSchema]) -> dict[str, Kind]:
    return common_kinds(schemas)[0]


@lru_cache(maxsize=_KEPT)
def read_columns(computation: Computation, stream: int) -> frozenset[str]:
    """Return the columns of a stream that a computation reads."""
    join = computation.join
    if join is None:
        expressions = [computation.where, *(item for _, item in computation.key)]
        expressions += [element.argument for _, element in computation.aggregates]
        result = {
            column.name
            for expression in expressions
            if expression is not None
            for column in columns_in(expression)
        }
        return frozenset(result - {STREAM})
    right = stream in join.right
    names = {column.name for pair in join.on for column in columns_in(pair[right])}
    side = join.right_columns if right else join.left
    return frozenset((names | {value.name.partition(".")[2] for value in side}) - {STREAM})
