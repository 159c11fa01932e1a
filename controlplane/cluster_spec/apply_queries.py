"""Queries of a described cluster: new ones are submitted and placed.

Of live queries, weights and floors of load shedding are updated.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from controlplane.access.roles import Actor
from controlplane.catalog.queries import query_by_name
from controlplane.catalog.query_checks import FLOOR, WEIGHT
from controlplane.catalog.query_settings import set_shedding
from controlplane.cluster_spec.document import BadDescription, ClusterDescription, QueryPart
from controlplane.cluster_spec.report import ImportReport, count_text, errors_at
from controlplane.models import Cluster, Query
from controlplane.pagination.chunks import chunks
from controlplane.queries.key_groupings import PARAMETERS, stored_parameters
from controlplane.queries.spec import spec_of
from controlplane.topology import placement, queries


def apply_queries(
    actor: Actor,
    cluster: Cluster,
    description: ClusterDescription,
    before: ClusterDescription,
    report: ImportReport,
) -> None:
    """Submit the queries that are not live, and place them as described."""
    live = {part.name: part for part in before.queries}
    _refuse_changed(description.queries, live)
    new = [(index, part) for index, part in enumerate(description.queries) if part.name not in live]
    for chunk in chunks(new, queries.MAX_BULK):
        with errors_at("queries", [index for index, _ in chunk]):
            queries.submit_many(actor, cluster, [spec_of(part) for _, part in chunk])
    _set_shedding(actor, cluster, description.queries, live, report)
    report.left += _unapplied(description, before)
    report.placed = _place(cluster, description, [part for _, part in new])
    for _, part in new:
        report.note("queries", part.name)


def _set_shedding(
    actor: Actor,
    cluster: Cluster,
    parts: Sequence[QueryPart],
    live: Mapping[str, QueryPart],
    report: ImportReport,
) -> None:
    """Update the weights and floors of live queries."""
    for index, part in enumerate(parts):
        known = live.get(part.name)
        given = part.shedding_weight, part.shedding_floor
        if known is None or given == (known.shedding_weight, known.shedding_floor):
            continue
        with errors_at("queries", [index]):
            set_shedding(actor, query_by_name(cluster, part.name), *given)
        report.note("queries", part.name, is_new=False)


def _unapplied(description: ClusterDescription, before: ClusterDescription) -> list[str]:
    """Return the differences of live queries from the description, which are not applied."""
    live = {part.name: part for part in before.queries}
    unnamed = len(live.keys() - {part.name for part in description.queries})
    elsewhere = sum(
        name in live and before.placement.get(name) != place
        for name, place in description.placement.items()
    )
    merged = sum(_merged_elsewhere(part, live.get(part.name)) for part in description.queries)
    goes_on = "is not named by the description: it goes on"
    go_on = "are not named by the description: they go on"
    moves = "elsewhere than described: moving {} is a proposal's business"
    present, several = f"is {moves.format('it')}", f"are {moves.format('them')}"
    merges = "merged elsewhere than described: moving that takes a command of its own"
    return [
        *count_text(unnamed, f"live query {goes_on}", f"live queries {go_on}"),
        *count_text(elsewhere, f"running query {present}", f"running queries {several}"),
        *count_text(merged, f"running query is {merges}", f"running queries are {merges}"),
    ]


def _merged_elsewhere(part: QueryPart, live: QueryPart | None) -> bool:
    # Nobody merges what waits for a node yet, and what is left out may be anywhere.
    if live is None or None in (part.aggregator, live.aggregator):
        return False
    return bool(part.aggregators != live.aggregators)


def _refuse_changed(parts: Sequence[QueryPart], live: Mapping[str, QueryPart]) -> None:
    faults = {
        f"queries[{index}]": [
            f"A live query is called {part.name} and is another one: end it first"
        ]
        for index, part in enumerate(parts)
        if part.name in live and _computed(part) != _computed(live[part.name])
    }
    if faults:
        raise BadDescription(faults)


def _computed(part: QueryPart) -> QueryPart:
    """Return the fields of a query that an import compares; defaults count as left out."""
    changed: dict[str, Any] = {"measured": None, "aggregator": None, "more_aggregators": []}
    changed |= {WEIGHT: 0.0, FLOOR: 0.0}
    changed[PARAMETERS] = stored_parameters(part.key_grouping, part.key_grouping_parameters)
    compared: QueryPart = part.model_copy(update=changed)
    return compared


def _place(cluster: Cluster, description: ClusterDescription, parts: Iterable[QueryPart]) -> int:
    """Place new queries as described; return how many. A worker places the others."""
    wanted = [part for part in parts if part.name in description.placement]
    placed = 0
    for chunk in chunks(wanted, placement.PASS):
        by_name = {part.name: part for part in chunk}
        rows = Query.objects.filter(
            cluster=cluster, state=Query.State.PENDING, name__in=list(by_name)
        )
        ids = dict(rows.values_list("id", "name"))
        task_ranges = {
            pk: [
                (item.node, item.first, item.stop)
                for item in description.task_ranges(by_name[name])
            ]
            for pk, name in ids.items()
        }
        aggregators = {pk: by_name[name].aggregators for pk, name in ids.items()}
        placed += placement.place_as(cluster, task_ranges, aggregators)
    return placed
