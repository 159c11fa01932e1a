"""A described cluster comes into Weir whole or not at all, and goes out as it came."""

import json
import socket
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from hypothesis import HealthCheck, Phase, given, settings

from controlplane.access.roles import Actor
from controlplane.cluster_spec.apply import apply_description
from controlplane.cluster_spec.document import BadDescription, ClusterDescription, PolicyPart
from controlplane.cluster_spec.export import description_of
from controlplane.cluster_spec.text import parse_description
from controlplane.connections import redis_client
from controlplane.errors import Conflict, Forbidden
from controlplane.models import AuditEntry, Cluster, Query, RoutingVersion, Stream
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of
from controlplane.topology import rows
from controlplane.wire.routing.publication import read_table
from controlplane.wire.schema import StreamSchema
from tests.support.cluster import actor, replayed_table
from tests.support.descriptions import FOLDER, SMALL, descriptions, small
from tests.support.destinations import list_destinations
from tests.support.kafka import running_kafka
from tests.support.schemas import REPORTS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.both_databases(daily="postgresql")
@given(description=descriptions())
@settings(
    max_examples=12, deadline=None,
    # Whole clusters are too slow to look for the smallest that fails.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
def test_what_is_imported_is_exported_again(
    redis_url: str, description: ClusterDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but what the pipeline measures; and what is decided replays to the same table."""
    list_destinations(monkeypatch, FOLDER)
    call_command("flush", verbosity=0, interactive=False)
    redis_client().flushdb()
    by = actor("admin")
    apply_description(by, description, apply=True)
    cluster = Cluster.objects.get(slug=description.cluster.slug)
    found = description_of(cluster)
    given_policy = description.policy.given()
    policy = found.policy.model_dump(include=set(given_policy))
    assert policy == given_policy
    assert found.model_copy(update={"policy": description.policy}) == description
    assert replayed_table(cluster) == rows.current_table(cluster.pk)
    assert not apply_description(by, found, apply=True).changes


def test_the_policy_has_the_settings_of_policies() -> None:
    assert set(PolicyPart.model_fields) == set(PolicySettings.model_fields)


@pytest.mark.both_databases
def test_without_apply_nothing_stays(admin: Actor) -> None:
    """It says what would be done, having tried all of it."""
    report = apply_description(admin, small(), apply=False)
    assert (report.new, report.placed, report.changes) == (True, 4, 1 + 4 + 3 + 5)
    assert report.created["queries"] == ["a", "b", "c", "d", "e"]
    assert not Cluster.objects.exists()
    assert not RoutingVersion.objects.exists()
    assert redis_client().keys("*pump*") == []


def test_it_is_placed_and_published_as_described(admin: Actor) -> None:
    apply_description(admin, small(), apply=True)
    cluster = Cluster.objects.get(slug="pump")
    assert cluster.desired == "stopped"
    table = read_table(redis_client(), "pump", cluster.routing_version)
    by_name = dict(Query.objects.values_list("name", "id"))
    assert table.queries[by_name["c"]].node == 1
    assert table.queries[by_name["e"]].task_ranges == ((0, 0, 6), (1, 6, 8))
    assert Query.objects.get(name="d").state == "pending"
    assert AuditEntry.objects.filter(action="cluster.apply").count() == 1


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("name: d,", "name: d d,", "queries[3].name"),
        ("count(*)", "count(*", "queries[4].text.aggregates.n"),
        ("window_s: 10}", "window_s: 700000}", "queries[2].text.window_s"),
        ("name: level", "name: le vel", "streams[0].name"),
        ("name: Pump works", "name: Pump works, master: yes", "cluster.master"),
        ("name: flow,", "name: flow, partition_splits: {'0': 0},", "streams[1].partition_splits"),
        ("placement:", "policy: {auto_from: '08:00'}\nplacement:", "policy.auto_until"),
    ],
)
def test_a_fault_that_a_service_finds_is_told_with_its_place_and_nothing_stays(
    admin: Actor, before: str, after: str, place: str
) -> None:
    text = SMALL.replace(before, after)
    if "le vel" in after:
        text = text.replace("[level", "[le vel")
    with pytest.raises(BadDescription) as refused:
        apply_description(admin, parse_description(text), apply=True)
    assert place in refused.value.faults
    assert not Cluster.objects.exists()


def test_a_described_schema_is_declared_and_changed_under_the_rules(admin: Actor) -> None:
    """A wider type and a new column are taken; what breaks a query is refused with its name."""
    apply_description(admin, small(), apply=True)
    speed = '{"name":"speed","nullable":true,"type":"int32"}'
    wider = SMALL.replace(speed, f"{speed.replace('int32', 'int64')},{{name: note, type: string}}")
    report = apply_description(admin, parse_description(wider), apply=True)
    assert report.changed == {"streams": ["flow", "level", "no"]}
    assert apply_description(admin, parse_description(wider), apply=True).changes == 0
    cluster = Cluster.objects.get()
    found = StreamSchema.from_json(cluster.streams.get(name="flow").schema)
    assert {c.name: c.type for c in found.columns}["speed"] == "int64"
    assert rows.current_table(cluster.pk).schemas[cluster.streams.get(name="flow").pk] == found
    unsaid = parse_description(SMALL.replace(f", schema: {REPORTS.to_text()}", ""))
    assert unsaid.streams[0].data_schema is None
    assert apply_description(admin, unsaid, apply=True).changes == 0
    car = '"name":"car","nullable":false,"type":'
    text = SMALL.replace(f'{car}"int32"', f'{car}"date"')
    with pytest.raises(Conflict) as refused:
        apply_description(admin, parse_description(text), apply=True)
    assert refused.value.data["columns"][0]["queries"] == ["e"]


def test_a_new_stream_without_a_schema_or_with_a_bad_one_is_told_by_its_place(
    admin: Actor,
) -> None:
    """By stream and column."""
    named = SMALL.replace('"name":"speed"', '"name":"größe"', 1)
    for text, place in (
        (SMALL.replace("queries:", "- {name: ebb}\nqueries:"), "streams[3].schema"),
        (named, "streams[0].schema.columns.größe"),
    ):
        with pytest.raises(BadDescription) as refused:
            apply_description(admin, parse_description(text), apply=True)
        assert place in refused.value.faults


def test_what_is_there_is_completed_and_what_runs_is_left(admin: Actor) -> None:
    apply_description(admin, small(), apply=True)
    more = (
        SMALL.replace("capacity: 50", "capacity: 75").replace("a: 0", "a: 1")
        + """\
policy: {watch: act}
"""
    )
    # The stream ebb is new, and the query f on it stands where b did.
    ebb = "- {name: ebb, schema: {columns: [{name: depth, type: float64}]}}"
    more = more.replace("queries:", f"{ebb}\nqueries:").replace("  b: 0\n", "  f: 1\n")
    more = more.replace("{name: b, streams: [flow]", "{name: f, streams: [ebb]")
    report = apply_description(admin, parse_description(more), apply=True)
    assert report.created == {"streams": ["ebb"], "queries": ["f"]}
    assert report.changed == {"nodes": ["spare"], "policy": ["watch"]}
    assert report.left == [
        "1 live query is not named by the description: it goes on",
        "1 running query is elsewhere than described: moving it is a proposal's business",
    ]
    cluster = Cluster.objects.get()
    found = description_of(cluster)
    assert [query.name for query in found.queries] == ["a", "b", "c", "d", "e", "f"]
    assert found.placement["a"] == 0
    assert policy_of(cluster).watch == "act"


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("window_s: 10", "window_s: 20", "queries[2]"),
        ("slug: pump,", "slug: pump, log_url: 'kafka://broker:9092/pump',", "cluster.log_url"),
    ],
)
def test_what_runs_is_not_changed_in_passing(
    admin: Actor, before: str, after: str, place: str
) -> None:
    apply_description(admin, small(), apply=True)
    with pytest.raises(BadDescription) as refused:
        apply_description(admin, parse_description(SMALL.replace(before, after)), apply=True)
    assert list(refused.value.faults) == [place]


def test_characteristics_and_the_capacity_of_split_nodes_are_described(admin: Actor) -> None:
    """A stream on a split node that is not there yet opens it; left out, they stay."""
    apply_description(admin, small(), apply=True)
    name = small().streams[0].name
    whole = small().to_json()
    whole["cluster"] |= {"split_capacity": 800.0, "split_emulated": True, "splits": 9}
    known = {"average": 20.0, "period_s": 3_600.0, "transition": "jump"}
    whole["streams"][0] |= {"characteristics": known, "split": 8}
    more = ClusterDescription.model_validate_json(json.dumps(whole))
    assert "split_capacity" in apply_description(admin, more, apply=True).changed["cluster"]
    cluster = Cluster.objects.get()
    stream = cluster.streams.get(name=name)
    assert (cluster.split_capacity, cluster.split_emulated, cluster.splits) == (800, True, 9)
    assert (stream.characteristics, stream.split) == (known, 8)
    assert not apply_description(admin, description_of(cluster), apply=False).changes
    del whole["streams"][0]["characteristics"]
    less = ClusterDescription.model_validate_json(json.dumps(whole))
    apply_description(admin, less, apply=True)
    stream.refresh_from_db()
    assert stream.characteristics == known


def test_a_contradictory_characteristic_is_refused_with_its_place(admin: Actor) -> None:
    whole = small().to_json()
    whole["streams"][0]["characteristics"] = {"minimum": 9.0, "maximum": 3.0}
    faulty = ClusterDescription.model_validate_json(json.dumps(whole))
    with pytest.raises(BadDescription) as refused:
        apply_description(admin, faulty, apply=True)
    assert list(refused.value.faults) == ["streams[0].characteristics.minimum"]


def test_nodes_are_added_by_a_description(admin: Actor) -> None:
    """The next micro-batch has them: nothing is stopped."""
    apply_description(admin, small(), apply=True)
    more = parse_description(SMALL.replace("slug: pump,", "slug: pump, slots: 6,"))
    assert "slots" in apply_description(admin, more, apply=True).changed["cluster"]
    cluster = Cluster.objects.get()
    assert (cluster.slots, cluster.nodes.count()) == (6, 6)
    assert replayed_table(cluster) == rows.current_table(cluster.pk)
    assert rows.current_table(cluster.pk).node_count == 6


def test_it_takes_an_admin(approver: Actor) -> None:
    with pytest.raises(Forbidden):
        apply_description(approver, small(), apply=False)


def test_no_password_is_written_down(admin: Actor) -> None:
    """And the export of a cluster goes into the same cluster, but not into a new one."""
    with running_kafka() as address:
        url = f"kafka://weir:secret@{address}/records"
        text = SMALL.replace("slug: pump,", f"slug: pump, log_url: '{url}',")
        apply_description(admin, parse_description(text), apply=True)
    cluster = Cluster.objects.get()
    assert cluster.log_url == url
    found = description_of(cluster)
    assert found.cluster.log_url == f"kafka://weir:***@{address}/records"
    assert not apply_description(admin, found, apply=True).changes
    elsewhere = found.cluster.model_copy(update={"slug": "other"})
    with pytest.raises(BadDescription) as refused:
        apply_description(admin, found.model_copy(update={"cluster": elsewhere}), apply=True)
    assert list(refused.value.faults) == ["cluster.log_url"]


@pytest.mark.parametrize("apply", [True, False])
def test_a_log_that_does_not_respond_is_a_fault_at_its_place(admin: Actor, *, apply: bool) -> None:
    url = "redis://:secret@127.0.0.1:9/0"
    text = SMALL.replace("slug: pump,", f"slug: pump, log_url: '{url}',")
    with pytest.raises(BadDescription) as refused:
        apply_description(admin, parse_description(text), apply=apply)
    assert list(refused.value.faults) == ["cluster.log_url"]
    assert "secret" not in str(refused.value.faults)
    assert not Cluster.objects.exists()


def test_names_of_brokers_are_resolved_before_the_transaction(
    admin: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once: a source that the cluster has already is not resolved again."""
    resolve, resolved = socket.getaddrinfo, []

    def noted(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if port == 9092:
            resolved.append((host, connection.in_atomic_block))
        return resolve(host, port, *args, **kwargs)

    def applied(servers: str, title: str) -> None:
        level = f"name: level, title: {title}, source: {{servers: '{servers}', topic: orders}}"
        text = SMALL.replace("name: level", level, 1)
        apply_description(admin, parse_description(text), apply=True)

    monkeypatch.setattr(socket, "getaddrinfo", noted)
    applied("127.0.0.1:9092", "one")
    applied("127.0.0.1:9092", "two")
    assert resolved == [("127.0.0.1", False)]
    stream = Stream.objects.get(name="level")
    assert (stream.source["topic"], stream.title) == ("orders", "two")
    with pytest.raises(BadDescription) as refused:
        applied("nowhere.example:1", "three")
    assert list(refused.value.faults) == ["streams[0].source.servers"]
