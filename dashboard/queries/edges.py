"""Key grouping, aggregator and drop rules on the page of a query."""

from typing import Any

from controlplane.models import Cluster, Query
from controlplane.wire.routing.route import HASH, KEY_GROUPINGS
from dashboard.streams.drop_rule_forms import drop_rule_rows


def splitting(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return key groupings, aggregator nodes and drop rules: a query's own and possible ones."""
    return {
        "key_grouping": KEY_GROUPINGS[query.key_grouping or HASH],
        "key_groupings": KEY_GROUPINGS.values(),
        "aggregators": cluster.nodes.filter(index__in=query.aggregators).order_by("index"),
        "nodes": cluster.nodes.filter(active=True).order_by("index"),
        "drops": drop_rule_rows(query.drops.select_related("stream", "query")),
    }
