"""Queries, the streams they read, the tasks that run them, drop rules, and bulk actions."""

from typing import Any

from django.db import models

from controlplane.models.cluster import Cluster, Node, Stream
from controlplane.queries.spec import QuerySpec
from controlplane.wire.routing.drop_rules import INPUT, DropRule, Edge
from controlplane.wire.routing.route import TaskRange, task_ranges_from

LIVE_STATES = ("pending", "running", "ending")


class BulkAction(models.Model):
    """An action on many queries: those of a filter text, or named ones.

    `filter`: the text, empty for named queries; `total`: the number of queries at its start,
    `done`: of processed queries, `failed`: of queries that could not be changed. `source`: the
    bulk action whose queries this one restores.
    """

    class Kind(models.TextChoices):
        """What is done with the queries."""

        END = "end"
        RESTORE = "restore"

    class State(models.TextChoices):
        """The state of the action."""

        RUNNING = "running"
        DONE = "done"
        CANCELLED = "cancelled"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="bulk_actions")
    kind = models.CharField(max_length=10, choices=Kind)
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    filter = models.CharField(max_length=500, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    total = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    # The queries up to this id are processed.
    last_query = models.PositiveBigIntegerField(default=0)
    source = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="restorations"
    )
    requested_by = models.CharField(max_length=150)
    requested_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-requested_at", "-id"]
        indexes = [models.Index(fields=["cluster", "-requested_at"], name="bulk_action_by_age")]

    def __str__(self) -> str:
        return f"{self.kind} {self.total} queries"


class Query(models.Model):
    """A continuous select-map-aggregate query; names of live queries are unique.

    `text`: the query as JSON (controlplane.wire.query.QueryText); text, because the order of its
    names matters and jsonb does not preserve it. `window_s`: the length of its windows in seconds.
    `task_count`: the number of tasks that its key is split into; `key_grouping`: the assignment of
    keys to tasks, a name of algorithms.partitioning.catalog (blank: by key, without aggregator);
    `key_grouping_parameters`: its parameters that are not the defaults; `aggregator`: the node that
    merges its windows, or the first of several; `more_aggregators`: the indices of the others.
    `incarnation`: a move without state increments it. `retention_s`, `retention_windows`: the
    retention of windows in event time, and their maximum number. `shedding_weight`: the value of a
    record, `shedding_floor`: the least part of its records that is kept, when records are dropped.
    `evaluations_per_s`, `state_bytes`: of its tasks; `latency_ms`: the p95 of the slowest of its
    nodes; `processor_percent`: the estimated processor time (catalog.query_costs);
    `shared_with`: the number of other queries with the same computation on one of its nodes: means
    of the last minute at `measured_at`, null before. `source_rate`: records/s of its streams, at
    most half a minute ago while it is live. `late_records`: all records that were too late for it;
    `late_at`: the last of them. `bulk_action`: the action that ended it.
    `submitted_by`: a user name as text. `fault`: the reason why the data plane could not compute
    the query, stage of the engine, index of the node, sample of the input (a list of rows); empty
    for none.
    """

    class State(models.TextChoices):
        """The state of a query."""

        PENDING = "pending"
        RUNNING = "running"
        ENDING = "ending"
        ENDED = "ended"
        FAILED = "failed"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="queries")
    name = models.CharField(max_length=100)
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    text = models.TextField()
    window_s = models.FloatField()
    task_count = models.PositiveSmallIntegerField(default=QuerySpec.tasks)
    key_grouping = models.CharField(max_length=20, blank=True, default="")
    key_grouping_parameters = models.JSONField(default=dict, blank=True)
    aggregator = models.ForeignKey(
        Node, on_delete=models.PROTECT, null=True, blank=True, related_name="aggregated_queries"
    )
    more_aggregators = models.JSONField(default=list, blank=True)
    incarnation = models.PositiveIntegerField(default=0)
    retention_s = models.PositiveIntegerField(default=QuerySpec.retention_s)
    retention_windows = models.PositiveIntegerField(default=QuerySpec.retention_windows)
    shedding_weight = models.FloatField(default=QuerySpec.shedding_weight)
    shedding_floor = models.FloatField(default=QuerySpec.shedding_floor)
    submitted_by = models.CharField(max_length=150, blank=True)
    submitted_at = models.DateTimeField()
    placed_at = models.DateTimeField(null=True, blank=True)
    ends_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    detail = models.CharField(max_length=300, blank=True)
    fault = models.JSONField(default=dict, blank=True)
    evaluations_per_s = models.FloatField(default=0.0)
    latency_ms = models.FloatField(default=0.0)
    state_bytes = models.BigIntegerField(default=0)
    shared_with = models.PositiveIntegerField(default=0)
    processor_percent = models.FloatField(default=0.0)
    measured_at = models.DateTimeField(null=True, blank=True)
    source_rate = models.FloatField(default=0.0)
    late_records = models.BigIntegerField(default=0)
    late_at = models.DateTimeField(null=True, blank=True)
    bulk_action = models.ForeignKey(
        BulkAction, on_delete=models.SET_NULL, null=True, blank=True, related_name="queries"
    )
    streams = models.ManyToManyField(Stream, through="QueryStream", related_name="queries")

    class Meta:
        ordering = ["-submitted_at", "-id"]
        verbose_name_plural = "queries"
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "name"],
                condition=models.Q(state__in=LIVE_STATES),
                name="query_live_name_once",
            ),
        ]
        indexes = [
            models.Index(fields=["cluster", "state", "id"], name="query_by_state"),
            # Lists in the order of age are filtered and counted from this index alone.
            models.Index(
                fields=[
                    "cluster",
                    "-submitted_at",
                    "-id",
                    "state",
                    "evaluations_per_s",
                    "latency_ms",
                    "state_bytes",
                    "shared_with",
                    "processor_percent",
                    "source_rate",
                    "window_s",
                    "task_count",
                ],
                name="query_by_age",
            ),
            models.Index(fields=["cluster", "name", "id"], name="query_by_name"),
            models.Index(
                fields=["cluster"],
                condition=models.Q(late_records__gt=0),
                name="query_late",
            ),
            models.Index(fields=["state", "ended_at"], name="query_by_end"),
            # With the state: most lists are of live queries.
            models.Index(
                fields=["cluster", "evaluations_per_s", "id", "state"], name="query_by_evaluations"
            ),
            models.Index(fields=["cluster", "latency_ms", "id", "state"], name="query_by_latency"),
            models.Index(fields=["cluster", "state_bytes", "id", "state"], name="query_by_size"),
            models.Index(fields=["cluster", "shared_with", "id", "state"], name="query_by_sharing"),
            models.Index(
                fields=["cluster", "processor_percent", "id", "state"], name="query_by_processor"
            ),
            models.Index(
                fields=["ends_at"],
                condition=models.Q(ends_at__isnull=False),
                name="query_by_deadline",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def aggregators(self) -> list[int]:
        """Return the indices of all aggregator nodes."""
        return [] if self.aggregator is None else [self.aggregator.index, *self.more_aggregators]


class QueryStream(models.Model):
    """One stream that one query reads."""

    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="subscriptions")
    stream = models.ForeignKey(Stream, on_delete=models.PROTECT, related_name="subscriptions")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["query", "stream"], name="query_stream_once"),
        ]

    def __str__(self) -> str:
        return f"{self.query_id} reads {self.stream_id}"

    @staticmethod
    def by_query(rows: "models.QuerySet[QueryStream]") -> dict[int, list[int]]:
        """Return the ids of the streams that queries read, in the order of the rows, by query."""
        streams: dict[int, list[int]] = {}
        for query, stream in rows.values_list("query_id", "stream_id"):
            streams.setdefault(query, []).append(stream)
        return streams


class Task(models.Model):
    """Consecutive tasks of a query on a node, from `index` to that of the next row.

    The row with index 0 has the query's first node. Rows exist as long as the query is routed.
    """

    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="tasks")
    index = models.PositiveSmallIntegerField(default=0)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="tasks", db_index=False)
    since_version = models.PositiveBigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["query", "index"], name="task_index_once"),
        ]
        # The queries of nodes are counted from it.
        indexes = [models.Index(fields=["node", "query"], name="task_by_node")]

    def __str__(self) -> str:
        return f"{self.query_id}.{self.index}"

    @staticmethod
    def ranges(
        rows: "models.QuerySet[Task]", key: str = "query_id"
    ) -> dict[Any, tuple[TaskRange, ...]]:
        """Return the ranges of tasks of the queries of these rows, by a column of the query."""
        starts: dict[Any, list[tuple[int, int]]] = {}
        counts: dict[Any, int] = {}
        columns = (key, "query__task_count", "index", "node__index")
        for query, count, index, node in rows.order_by("query_id", "index").values_list(*columns):
            starts.setdefault(query, []).append((index, node))
            counts[query] = count
        return {query: task_ranges_from(pairs, counts[query]) for query, pairs in starts.items()}


class Drop(models.Model):
    """A drop rule on the input of a stream, or on its edge to a query.

    `rule`: the wire's value (controlplane.wire.routing.drop_rules.DropRule) as JSON. The row exists
    as long as the routing table has the rule. `dropped` counts records since the row was created,
    `per_s` is their present rate. `settles`: the step (since, ms) before which steps are deleted
    when the pipeline has processed the log up to a position; null if no step can be deleted.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="drops")
    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="drops")
    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, null=True, blank=True, related_name="drops"
    )
    rule = models.JSONField()
    since_version = models.PositiveBigIntegerField()
    set_by = models.CharField(max_length=150, blank=True)
    set_at = models.DateTimeField()
    reason = models.TextField(blank=True)
    dropped = models.PositiveBigIntegerField(default=0)
    per_s = models.FloatField(default=0.0)
    settles = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ["stream", "query"]
        constraints = [
            models.UniqueConstraint(
                fields=["stream", "query"],
                condition=models.Q(query__isnull=False),
                name="drop_split_edge_once",
            ),
            models.UniqueConstraint(
                fields=["stream"],
                condition=models.Q(query__isnull=True),
                name="drop_input_edge_once",
            ),
        ]

    def __str__(self) -> str:
        return f"drop of {self.stream_id}>{self.query_id or INPUT}"

    @property
    def edge(self) -> Edge:
        """Return the edge as `Edge`."""
        return self.stream_id, self.query_id or INPUT

    @property
    def value(self) -> DropRule:
        """Return the rule as the wire's value."""
        return DropRule.from_json(self.rule)
