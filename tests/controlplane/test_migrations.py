"""Rows that an earlier release stored are rows of this one after the migrations.

A migration back and forth takes seconds, so all tests share one way back and one way forward: each
stores its rows while the database is in the state that it yields, and continues in a later one.
"""

import json
from collections.abc import Callable, Generator
from contextlib import suppress
from datetime import UTC, datetime, time
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from controlplane.access import audit_chain, audit_triggers
from controlplane.executions.steps import rollback_of
from controlplane.models import AuditEntry, Cluster, Policy, Proposal, Query, RoutingVersion
from controlplane.plans.plan import TaskMove, seal_of, task_moves
from controlplane.policies.settings import PolicySettings, settings_of
from controlplane.policies.store import policy_of
from controlplane.topology.rows import current_table
from controlplane.topology.versions import delta_of
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.table import RoutingTable
from controlplane.wire.schema import StreamSchema
from tests.support.schemas import REPORTS

TEXT = '{"aggregates":{"n":"count(*)"},"window_s":0.25}'
NEWEST = "newest"
# Yields names of migrations in their order, at last `NEWEST`; is sent the models in that state.
Journey = Generator[str, Any, None]


def migrated(name: str) -> Any:
    """Migrate the database to a migration, and return the models in that state."""
    executor = MigrationExecutor(connection)
    leaves = executor.loader.graph.leaf_nodes("controlplane")
    targets = leaves if name == NEWEST else [("controlplane", name)]
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.mark.both_databases(daily="sqlite")
@pytest.mark.django_db(transaction=True)
def test_rows_of_earlier_releases_are_rows_of_this_one(subtests: pytest.Subtests) -> None:
    travelling = [journey() for journey in JOURNEYS]
    waiting = [(next(journey), journey) for journey in travelling]
    try:
        while waiting:
            # Digits come before letters: the newest state is the last.
            state = min(name for name, _ in waiting)
            models = migrated(state)
            arrived = [journey for name, journey in waiting if name == state]
            waiting = [(name, journey) for name, journey in waiting if name != state]
            for journey in arrived:
                with (
                    subtests.test(getattr(journey, "__name__", ""), state=state),
                    suppress(StopIteration),
                ):
                    waiting.append((journey.send(models), journey))
    finally:
        migrated(NEWEST)
        # They refuse the deletion of rows after a test.
        audit_triggers.remove(connection)


def queries_of_one_column_get_the_text_that_computes_the_same() -> Journey:
    old = yield "0017_batch_limits"
    cluster = old.get_model("controlplane", "Cluster").objects.create(slug="texts", name="texts")
    rows = old.get_model("controlplane", "Query").objects
    at = {"cluster": cluster, "submitted_at": datetime(2026, 1, 1, tzinfo=UTC)}
    rows.create(name="plain", window_s=90, value="x", **at)
    rows.create(name="text", window_s=1, value="", text=TEXT, **at)
    new = yield "0019_exact_windows"
    queries = new.get_model("controlplane", "Query").objects
    found = {row.name: (row.text, row.window_s) for row in queries.all()}
    assert found["text"] == (TEXT, 0.25)
    text, window_s = found["plain"]
    names = {"count": "count(*)", "n": "count(x)", "mean": "mean(x)", "minimum": "min(x)"}
    wanted = QueryText(names | {"maximum": "max(x)"}, window_s=90.0, key=["stream"])
    computed = computation_of(QueryText.from_json(json.loads(text)), REPORTS.kinds)
    assert (computed, window_s) == (computation_of(wanted, REPORTS.kinds), 90.0)


def streams_of_an_earlier_release_get_the_schema_of_their_records() -> Journey:
    """With a routing version of their own; a stream that has a schema keeps it."""
    typed = {"columns": [{"name": "n", "type": "int8", "nullable": True}]}
    old = yield "0023_stream_schemas"
    clusters = old.get_model("controlplane", "Cluster")
    streams = old.get_model("controlplane", "Stream")
    cluster = clusters.objects.create(slug="schemas", name="schemas", routing_version=4)
    for name, schema in (("bare", {}), ("said", {"speed": "cm/s"}), ("typed", typed)):
        streams.objects.create(cluster=cluster, name=name, schema=schema)
    new = yield NEWEST
    models = (new.get_model("controlplane", name) for name in ("Stream", "RoutingVersion"))
    rows, versions = (model.objects.filter(cluster__slug="schemas") for model in models)
    found = dict(rows.values_list("name", "schema"))
    version, nodes = versions.order_by("version")
    assert found["typed"] == typed
    kept = [StreamSchema.from_json(found[name]) for name in ("bare", "said")]
    assert kept == [REPORTS, REPORTS]
    assert (version.version, nodes.version) == (5, 6)
    assert [StreamSchema.from_json(op["schema"]) for op in version.ops] == kept


def the_settings_of_a_policy_are_kept() -> Journey:
    given = {"auto_from": time(22, 30), "auto_until": time(5), "watch": "act", "dead_band": 0.3}
    old = yield "0025_nodes_in_the_routing_table"
    cluster = old.get_model("controlplane", "Cluster").objects.create(
        slug="policies", name="policies"
    )
    old.get_model("controlplane", "Policy").objects.create(
        cluster=cluster, changed_by="eve", auto_kinds=["placement"], **given
    )
    yield NEWEST
    policy = policy_of(Cluster.objects.get(slug="policies"))
    assert policy == settings_of({**PolicySettings().model_dump(), **given,
                                  "auto_kinds": ["placement"]})  # fmt: skip
    assert Policy.objects.get(cluster__slug="policies").changed_by == "eve"


def audit_entries_of_an_earlier_release_are_sealed() -> Journey:
    models = yield "0041_audit_of_deleted_clusters"
    entries = models.get_model("controlplane", "AuditEntry").objects
    made = [
        entries.create(at=datetime.now(UTC), actor="a", action="x", object=f"{i}", after={"n": i})
        for i in range(3)
    ]
    yield NEWEST
    assert audit_chain.verify().is_intact
    sealed = AuditEntry.objects.filter(pk__in=[entry.pk for entry in made]).order_by("sequence")
    assert list(sealed.values_list("object", flat=True)) == ["0", "1", "2"]


def key_groupings_get_the_names_of_the_library() -> Journey:
    """In the rows of queries, and in the routing table by a version of its own."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    names = {"plain": "", "by-key": "hash", "hot": "two_choices", "ended": "two_choices"}
    old = yield "0031_admission"
    models = {name: old.get_model("controlplane", name) for name in (
        "Cluster", "Node", "Query", "Task", "RoutingVersion",
    )}  # fmt: skip
    cluster = models["Cluster"].objects.create(
        slug="groupings", name="groupings", slots=1, splits=1, routing_version=1
    )
    models["Cluster"].objects.create(slug="idle", name="idle", routing_version=4)
    node = models["Node"].objects.create(
        cluster=cluster, index=0, name="n", capacity=500.0, active=True
    )
    ids = {}
    for name, grouping in names.items():
        query = models["Query"].objects.create(
            cluster=cluster, name=name, text=TEXT, window_s=0.25, submitted_at=now,
            key_grouping=grouping, task_count=2, state="running" if name != "ended" else name,
            aggregator=node if grouping and name != "ended" else None,
        )  # fmt: skip
        ids[name] = query.pk
        if name != "ended":
            models["Task"].objects.create(query=query, node=node, since_version=1)
    models["RoutingVersion"].objects.create(
        cluster=cluster, version=1, reason="first", ops=[
            {"op": "set_node_count", "nodes": 1}, {"op": "set_split_count", "splits": 1},
            {"op": "set_capacity", "node": 0, "capacity": 500.0, "emulated": False},
            *(
                {"op": "add_query", "query": ids[name], "incarnation": 0, "node": 0,
                 "streams": [], "text": TEXT, "task_ranges": [[0, 0, 2]],
                 "key_grouping": '{"kind": "two_choices"}' if name == "hot" else "",
                 "aggregator": -1 if name == "plain" else 0, "more_aggregators": []}
                for name in ("plain", "by-key", "hot")
            ),
        ],
    )  # fmt: skip
    yield NEWEST
    queries = Query.objects.filter(cluster__slug="groupings")
    found = dict(queries.values_list("name", "key_grouping"))
    assert found == {"plain": "", "by-key": "key", "hot": "partial_key", "ended": "partial_key"}
    assert set(map(str, queries.values_list("key_grouping_parameters", flat=True))) == {"{}"}
    versions = RoutingVersion.objects.filter(cluster__slug="groupings").order_by("version")
    assert [row.version for row in versions] == [1, 2]
    table = RoutingTable().apply(*map(delta_of, versions))
    assert table == current_table(Cluster.objects.get(slug="groupings").pk)
    assert table.queries[ids["hot"]].key_grouping == '{"grouping":"partial_key"}'
    assert Cluster.objects.get(slug="idle").routing_version == 4


def moved(query: int, source: int, target: int, **more: Any) -> dict[str, Any]:
    """Return a move as an earlier release stored it."""
    return {
        "query": query, "name": f"q{query}", "from": source, "to": target, "bytes": 7,
        "outcome": None, "note": "", **more,
    }  # fmt: skip


def moves_become_actions_and_executions_go_on() -> Journey:
    """A ready proposal becomes stale; one that is executed can be rolled back."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    old = yield "0026_policy_settings"
    cluster = old.get_model("controlplane", "Cluster").objects.create(
        slug="actions", name="actions"
    )
    snapshot = old.get_model("controlplane", "Snapshot").objects.create(
        digest="d" * 64, data=b"", size=0, taken_at=now
    )
    proposals = old.get_model("controlplane", "Proposal").objects
    common = {
        "cluster": cluster, "requested_at": now, "snapshot_row": snapshot, "seal": "old",
        "moves": [moved(5, 0, 1), moved(6, 2, 3, first=4, past=5)], "path": [0.1, 0.2],
        "undo": {"moves": 2, "bytes": 14, "seconds": 4.0}, "lower_bound": 1.5,
        "predicted": {"moves": 2, "bytes": 14, "bytes_bound": 3.0}, "approved_by": "eve",
    }  # fmt: skip
    proposals.create(state="ready", **common)
    running = proposals.create(state="executing", **common)
    execution = old.get_model("controlplane", "Execution").objects.create(
        proposal=running, cluster=cluster, started_at=now, done=2, undo=common["undo"]
    )
    old.get_model("controlplane", "Step").objects.create(
        execution=execution,
        number=1,
        direction="forward",
        first=0,
        past=2,
        skipped=[1],
        published_at=now,
        state="done",
    )
    old.get_model("controlplane", "LedgerEntry").objects.create(
        proposal=running,
        cluster=cluster,
        planner="placement",
        algorithm="mms",
        at=now,
        predicted={"bytes": 7, "imbalance": 0.4},
        moves=1,
    )
    yield NEWEST
    waiting, running = Proposal.objects.order_by("pk")
    assert (waiting.state, bool(waiting.error)) == ("stale", True)
    assert running.state == "executing"
    assert task_moves(running.plan) == [TaskMove(5, 0, 0, 1, 7), TaskMove(6, 4, 2, 3, 7)]
    assert running.seal == seal_of(running.plan, "d" * 64) != "old"
    assert running.bounds == {"replication_factor": 1.5, "bytes": 3.0}
    assert (running.predicted["actions"], running.rollback_cost["actions"]) == (2, 2)
    (step,) = running.execution.steps.all()
    assert (step.applied, step.stop, step.skipped) == (1, 2, [[1, "changed"]])
    (back,) = rollback_of(running.execution)
    assert back == TaskMove(5, 0, 1, 0, 7)
    entry = running.ledger
    assert (entry.expected, entry.applied, entry.skipped) == ({"bytes": 7, "imbalance": 0.4}, 1, 1)
    assert entry.approved == {"bytes": 14, "imbalance": 0.4}


JOURNEYS: tuple[Callable[[], Journey], ...] = (
    queries_of_one_column_get_the_text_that_computes_the_same,
    streams_of_an_earlier_release_get_the_schema_of_their_records,
    the_settings_of_a_policy_are_kept,
    audit_entries_of_an_earlier_release_are_sealed,
    moves_become_actions_and_executions_go_on,
    key_groupings_get_the_names_of_the_library,
)
