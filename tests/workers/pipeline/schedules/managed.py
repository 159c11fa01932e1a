"""A world whose routing versions are decided by `topology.apply`, over rows in a database."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from controlplane.models import Cluster, Node, Query, QueryStream, RoutingVersion, Stream
from controlplane.queries.key_groupings import columns_of
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.publishing import publish_unpublished
from controlplane.topology.rows import current_table
from controlplane.topology.versions import delta_of
from controlplane.wire.routing.actions import Action
from tests.workers.pipeline.schedules.queries import Asked
from tests.workers.pipeline.schedules.world import World

# A Redis that was killed is back within seconds.
_PATIENCE_S = 30.0


@dataclass
class ManagedWorld(World):
    """A world with a row for each stream, node and query of its cluster."""

    row: Cluster = field(default_factory=Cluster)

    @classmethod
    def create(
        cls, client: Any, slug: str, nodes: int, splits: int, queries: Sequence[Asked]
    ) -> "ManagedWorld":
        """Write the rows of a cluster whose streams and queries are not routed yet."""
        row = Cluster.objects.create(slug=slug, name=slug, slots=nodes, splits=splits)
        Node.objects.bulk_create(
            Node(cluster=row, index=index, name=f"node {index}", capacity=1_000.0)
            for index in range(nodes)
        )
        streams = sorted({stream for query in queries for stream in query.streams})
        Stream.objects.bulk_create(Stream(pk=pk, cluster=row, name=f"s{pk}") for pk in streams)
        Query.objects.bulk_create(
            Query(
                pk=query.query, cluster=row, name=f"q{query.query}", text=query.json,
                window_s=query.text.window_s, task_count=query.tasks, submitted_at=timezone.now(),
                **_grouping_columns(query),
            )
            for query in queries
        )  # fmt: skip
        QueryStream.objects.bulk_create(
            QueryStream(query_id=query.query, stream_id=stream)
            for query in queries
            for stream in query.streams
        )
        return cls(client, slug, row=row)

    def publish(self, ops: Iterable[Action]) -> None:
        """Apply actions as the next version, and wait until it is published."""
        actions = list(ops)
        if not actions:
            return
        self.row.refresh_from_db()
        version = apply(self.row, actions, TopologyChange("a plan of the schedule")).version
        self.tables.append(self.tables[-1].apply(delta_of(version)))
        self._wait_until_published()

    def _wait_until_published(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        waiting = RoutingVersion.objects.filter(cluster=self.row, published_at=None)
        while waiting.exists():
            assert time.monotonic() < deadline, "the version was not published"
            time.sleep(0.1)
            publish_unpublished(self.row.pk)

    def check_rows(self) -> None:
        """Assert that the table of the rows is the one that the published versions lead to."""
        assert current_table(self.row.pk) == self.table


def _grouping_columns(query: Asked) -> dict[str, Any]:
    """Return the columns of a query that have its key grouping."""
    name, parameters = columns_of(query.key_grouping, aggregated=query.merged)
    return {"key_grouping": name, "key_grouping_parameters": parameters}
