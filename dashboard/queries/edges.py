"""Key grouping, aggregator and drop rules on the page of a query."""

from typing import Any

from controlplane.models import Cluster, Query
from controlplane.wire.routing.key_groupings import HASH, KEY_GROUPINGS
from dashboard.streams.drop_rule_forms import drop_rule_rows


def splitting(cluster: Cluster, query: Query) -> dict[str, Any]:
    """Return the key grouping of a query, all groupings, possible aggregators and drop rules."""
    return {
        "key_grouping": KEY_GROUPINGS[query.key_grouping or HASH],
        "key_groupings": KEY_GROUPINGS.values(),
        "nodes": cluster.nodes.filter(active=True).order_by("index"),
        "drops": drop_rule_rows(query.drops.select_related("stream", "query")),
    }
