"""Views of a cluster: the newest query of each name has one."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from controlplane.models import Cluster, Query, QueryStream
from controlplane.results.pages import result_columns
from controlplane.results.sql.columns import NUMBERS, ViewColumn, identifier, view_columns

# Views of a cluster: those of its newest queries.
MOST: Final = 10_000
# Views that lists show with their columns.
LISTED: Final = 100
# Queries per statement.
_CHUNK: Final = 500
# A change of the expressions of columns replaces all views.
_FORM: Final = 1
# The longest name of PostgreSQL (bytes).
_LONGEST: Final = 63
_DIGEST: Final = 12


@dataclass(frozen=True)
class ResultView:
    """The view of a query, by the query's name."""

    query: Query

    @property
    def name(self) -> str:
        """Return the name of the query."""
        return self.query.name

    @property
    def relation(self) -> str:
        """Return the name of the view in the database."""
        return relation_of(self.query.name)

    @cached_property
    def columns(self) -> tuple[ViewColumn, ...]:
        """Return the columns."""
        return view_columns(self.query.pk, result_columns(self.query))


def relation_of(name: str) -> str:
    """Return the name of a view: that of its query, shortened with a hash if it is too long."""
    data = name.encode()
    if len(data) <= _LONGEST:
        return name
    digest = hashlib.sha256(data).hexdigest()[:_DIGEST]
    return f"{data[: _LONGEST - _DIGEST - 1].decode(errors='ignore')}~{digest}"


def schema_of(cluster: Cluster) -> str:
    """Return the name of the schema with the views of a cluster: its slug."""
    taken = cluster.slug in ("public", "information_schema") or cluster.slug.startswith("pg_")
    return f"{cluster.slug}.results" if taken else cluster.slug


def example_of(view: ResultView) -> str:
    """Return a statement over a view that shows its aggregates by the start of windows."""
    names = [identifier(column.name) for column in view.columns if column.role != "window"]
    return (
        f"SELECT {', '.join(['window_start', *names])}\nFROM {identifier(view.relation)}\n"
        "WHERE final\nORDER BY window_start DESC\nLIMIT 100"
    )


def examples_of(view: ResultView) -> list[tuple[str, str]]:
    """Return titled statements over a view: its windows, and its first number by time and key."""
    examples = [(f"Newest windows of {view.name}", example_of(view))]
    keys = [column.name for column in view.columns if column.role == "key"]
    values = [c.name for c in view.columns if c.role == "aggregate" and c.type in NUMBERS]
    source = f"FROM {identifier(view.relation)}\nWHERE final\nGROUP BY"
    for value in values[:1]:
        total = f"sum({identifier(value)}) AS total"
        over_time = f"window_start, {total}\n{source} window_start\nORDER BY window_start DESC"
        examples.append((f"Total {value} over time", f"SELECT {over_time}\nLIMIT 100"))
        if keys:
            key = identifier(keys[0])
            by_key = f"{key}, {total}\n{source} {key}\nORDER BY total DESC"
            examples.append((f"Largest {value} by {keys[0]}", f"SELECT {by_key}\nLIMIT 20"))
    return examples


def view_names(cluster: Cluster) -> dict[str, int]:
    """Return the ids of the newest queries of each name, the newest first."""
    rows = Query.objects.filter(cluster=cluster).order_by("-pk").values_list("name", "pk")
    names: dict[str, int] = {}
    for name, pk in rows[:MOST].iterator():
        names.setdefault(name, pk)
    return names


def listed_views(cluster: Cluster, part: str = "", most: int = LISTED) -> list[ResultView]:
    """Return the first views by name of those with `part` in their names, at most so many."""
    known = sorted(view_names(cluster).items(), key=lambda row: (row[0].lower(), row[0]))
    ids = [pk for name, pk in known if part.lower() in name.lower()][:most]
    queries = Query.objects.prefetch_related("streams").in_bulk(ids)
    return [ResultView(queries[pk]) for pk in ids if pk in queries]


def views_of(cluster: Cluster, names: Iterable[str]) -> dict[str, ResultView]:
    """Return the views of a cluster with these names: of queries, or as the database has them."""
    wanted, known = set(names), view_names(cluster)
    chosen = {pk for name, pk in known.items() if relation_of(name) in wanted or name in wanted}
    queries = Query.objects.filter(pk__in=chosen).prefetch_related("streams")
    views = [ResultView(query) for query in queries]
    return {view.relation: view for view in views} | {view.name: view for view in views}


def view_digests(cluster: Cluster) -> Mapping[int, tuple[str, str]]:
    """Return by query the name of its relation, and a digest of what its columns follow from."""
    names = {pk: name for name, pk in view_names(cluster).items()}
    digests: dict[int, tuple[str, str]] = {}
    ids = sorted(names)
    for first in range(0, len(ids), _CHUNK):
        some = ids[first : first + _CHUNK]
        streams: dict[int, list[tuple[int, str, str]]] = {pk: [] for pk in some}
        rows = QueryStream.objects.filter(query__in=some).order_by("stream_id")
        for pk, stream, name, schema in rows.values_list(
            "query_id", "stream_id", "stream__name", "stream__schema"
        ):
            streams[pk].append((stream, name, json.dumps(schema, sort_keys=True)))
        for pk, text in Query.objects.filter(pk__in=some).values_list("pk", "text"):
            content = f"{_FORM} {pk} {text} {streams[pk]}".encode()
            digests[pk] = relation_of(names[pk]), hashlib.sha256(content).hexdigest()[:_DIGEST]
    return digests
