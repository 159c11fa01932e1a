"""Drops, blackouts, exclusions and aggregator nodes of a described cluster, by the services."""

from collections import Counter
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.cluster_spec.apply import apply_description
from controlplane.cluster_spec.document import BadDescription
from controlplane.cluster_spec.export import description_of
from controlplane.cluster_spec.text import as_yaml, parse_description
from controlplane.connections import redis_client
from controlplane.models import AuditEntry, Blackout, Cluster, Drop, Exclusion, Grant, Query
from controlplane.topology import drop_rules, queries, rows
from controlplane.topology.drop_rules import DropSpec
from controlplane.wire.routing.drop_rules import ALWAYS, INPUT, DropRule
from controlplane.wire.routing.publication import read_table
from tests.support.cluster import replayed_table
from tests.support.descriptions import MERGED, RULES, ruled, soon
from tests.support.records import append_at

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("commands")]


def test_what_holds_on_the_cluster_comes_in_by_the_services(admin: Actor) -> None:
    """With a version, an audit row and an owner, as if each had been asked for."""
    report = apply_description(admin, parse_description(ruled()), apply=True)
    assert report.created["blackouts"] == ["deliveries", "holidays"]
    assert report.created["exclusions"] == ["query d", "stream level"]
    assert report.created["drops"] == ["flow", "level to c", "level to e"]
    assert not report.left
    cluster = Cluster.objects.get()
    table = read_table(redis_client(), "pump", cluster.routing_version)
    assert table == replayed_table(cluster) == rows.current_table(cluster.pk)
    by_name = dict(Query.objects.values_list("name", "id"))
    assert table.queries[by_name["e"]].aggregator == 1
    streams = dict(cluster.streams.values_list("name", "id"))
    flow = table.drop_rules[streams["flow"], INPUT]
    assert flow == DropRule(((ALWAYS, 0.25),), 0, 60_000, 60_000, 2)
    assert table.drop_rules[streams["level"], by_name["e"]] == DropRule.of(0.1, by_name["e"])
    assert set(Exclusion.objects.values_list("owner", flat=True)) == {admin.name}
    actions = Counter(AuditEntry.objects.values_list("action", flat=True))
    assert (actions["blackout.add"], actions["exclusion.add"], actions["drop.set"]) == (2, 2, 3)


def test_shares_and_exclusions_are_brought_up_to_date(admin: Actor) -> None:
    """And a blackout is not: a range that somebody relies on has the reason that they gave."""
    apply_description(admin, parse_description(ruled()), apply=True)
    later = soon(60)
    text = ruled(later).replace("share: 0.25", "share: 0.75").replace("holidays", "a feast")
    report = apply_description(admin, parse_description(text), apply=True)
    assert not report.created
    assert report.changed == {"drops": ["flow"], "exclusions": ["query d", "stream level"]}
    assert report.left == [
        "1 blackout has another reason than described: remove it to create it again"
    ]
    found = description_of(Cluster.objects.get())
    assert found.drops[0].share == 0.75
    assert {one.until for one in found.exclusions} == {datetime.fromisoformat(later)}
    assert [one.reason for one in found.blackouts] == ["deliveries", "holidays"]


def test_what_the_description_does_not_name_stays(admin: Actor) -> None:
    apply_description(admin, parse_description(ruled()), apply=True)
    report = apply_description(
        admin, parse_description(MERGED.replace("aggregator: 1", "aggregator: 0")), apply=True
    )
    assert not report.changes
    assert report.left == [
        "1 running query is merged elsewhere than described: "
        "moving that takes a command of its own",
        "3 drops are not named by the description: they stay",
        "2 blackouts are not named by the description: they stay",
        "2 exclusions are not named by the description: they stay",
    ]
    found = description_of(Cluster.objects.get())
    assert (len(found.drops), len(found.blackouts), len(found.exclusions)) == (3, 2, 2)
    assert found.queries[4].aggregator == 1


def test_what_is_over_is_neither_made_nor_written_down(admin: Actor) -> None:
    """So a document can be kept for longer than what it says of some weeks."""
    text = ruled("2020-01-01T00:00:00Z").replace("2999-12", "2019-12")
    report = apply_description(admin, parse_description(text), apply=True)
    assert report.created["blackouts"] == ["deliveries"]
    assert "exclusions" not in report.created
    assert report.left == [
        "1 blackout is over: it is not made",
        "2 exclusions are over: they are not made",
    ]
    cluster = Cluster.objects.get()
    past = timezone.now() - timedelta(days=1)
    columns = {"cluster": cluster, "reason": "x", "owner": "x", "created_at": past}
    Blackout.objects.create(**columns, starts_at=past - timedelta(days=1), ends_at=past)
    Exclusion.objects.create(**columns, kind="query", subject="a", expires_at=past)
    found = description_of(cluster)
    assert ([one.reason for one in found.blackouts], found.exclusions) == (["deliveries"], [])


def test_what_is_not_described_takes_its_exclusion_and_drop_along(admin: Actor) -> None:
    """A query that is ending; what is left can be imported."""
    apply_description(admin, parse_description(ruled()), apply=True)
    cluster = Cluster.objects.get()
    queries.end(admin, cluster, ["c", "d"])
    found = description_of(cluster)
    assert [one.about for one in found.exclusions] == [("stream", "level")]
    assert [one.edge for one in found.drops] == [("flow", ""), ("level", "e")]
    assert parse_description(as_yaml(found)) == found


def test_a_drop_that_is_being_lifted_is_none(admin: Actor) -> None:
    """The rest of its windows is of this log's event time, and no matter elsewhere."""
    apply_description(admin, parse_description(ruled()), apply=True)
    cluster = Cluster.objects.get()
    flow = cluster.streams.get(name="flow")
    append_at(cluster, flow.pk, 1_000_000)
    drop_rules.set_drop(admin, flow, DropSpec(0.5, 60.0, None, 2))
    assert description_of(cluster).drops[0].share == 0.5
    assert len(Drop.objects.get(stream=flow).value.steps) == 2
    assert drop_rules.lift(admin, flow) is not None
    assert [one.edge for one in description_of(cluster).drops] == [("level", "c"), ("level", "e")]
    report = apply_description(admin, parse_description(ruled()), apply=True)
    assert report.created == {"drops": ["flow"]}
    assert Drop.objects.get(stream=flow).value.steps[-1][1] == 0.25


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        ("SOON", "'2999-01-01T00:00:00Z'", {"exclusions[0].until", "exclusions[1].until"}),
        ("reason: being looked at", "reason: ' '", {"exclusions[0].reason"}),
        ("30 6 * * 1-5, minutes: 180", "30 26 * * 1-5",
         {"blackouts[0].cron", "blackouts[0].minutes"}),
        (", ends_at: '2999-12-27T00:00:00Z'", "", {"blackouts[1].ends_at"}),
        ("window_s: 60.0", "window_s: 0.0001", {"drops[0].window_s"}),
        ("share: 0.1", "share: 0.1, batch: 2", {"drops[2].batch"}),
        ("window_s: 10.0", "window_s: 20.0", {"drops[1].window_s"}),
        ("  c: 1\n", "", {"drops[1].query"}),
    ],
)  # fmt: skip
def test_a_bad_rule_is_told_with_its_place_and_nothing_stays(
    admin: Actor, before: str, after: str, places: set[str]
) -> None:
    assert before in RULES
    text = RULES.replace(before, after).replace("SOON", f"'{soon()}'")
    with pytest.raises(BadDescription) as refused:
        apply_description(admin, parse_description(text), apply=True)
    assert set(refused.value.faults) == places
    assert not Cluster.objects.exists()


def test_a_drop_of_other_windows_is_lifted_first(admin: Actor) -> None:
    apply_description(admin, parse_description(ruled()), apply=True)
    with pytest.raises(BadDescription) as refused:
        apply_description(
            admin,
            parse_description(ruled().replace("window_s: 60.0", "window_s: 30.0")),
            apply=True,
        )
    assert "lift that first" in refused.value.faults["drops[0].window_s"][0]


def test_who_merges_is_chosen_where_the_description_leaves_it_out(admin: Actor) -> None:
    """Beside those that it names: the other node has less to merge."""
    computes = "key_grouping: key, text: {aggregates: {n: count(*)}, key: [car]}"
    more = f"- {{name: f, streams: [level], tasks: 2, {computes}}}\nplacement:\n  f: 0"
    text = MERGED.replace("placement:", more).replace("aggregator: 1", "aggregator: 0")
    apply_description(admin, parse_description(text), apply=True)
    merged = dict(Query.objects.exclude(key_grouping="").values_list("name", "aggregator__index"))
    assert merged == {"e": 0, "f": 1}


def test_parameters_of_a_key_grouping_come_back_without_the_defaults(admin: Actor) -> None:
    """So a description that names a default is no other query than the live one."""
    given = "key_grouping: random_choices\n  key_grouping_parameters: {eps: 0.05, seed: 0}"
    text = MERGED.replace("key_grouping: partial_key", given)
    apply_description(admin, parse_description(text), apply=True)
    found = description_of(Cluster.objects.get())
    (merged,) = [part for part in found.queries if part.name == "e"]
    assert (merged.key_grouping, merged.key_grouping_parameters) == (
        "random_choices",
        {"eps": 0.05},
    )
    assert not apply_description(admin, parse_description(text), apply=True).changes
    assert apply_description(
        admin, parse_description(text.replace("0.05", "0.1")), apply=True
    ).changes
    assert Query.objects.get(name="e").key_grouping_parameters == {"eps": 0.1}


def test_the_windows_of_an_edge_to_a_query_are_those_of_the_query(admin: Actor) -> None:
    """Left out or written down, where they overlap as well."""
    text = MERGED.replace("window_s: 60}", "window_s: 60, slide_s: 20}")
    drop = "{stream: flow, query: e, share: 0.5, window_s: 60.0}"
    apply_description(admin, parse_description(f"{text}drops: [{drop}]\n"), apply=True)
    found = description_of(Cluster.objects.get())
    assert (found.drops[0].window_s, found.drops[0].slide_s) == (60.0, 20.0)
    assert not apply_description(admin, found, apply=True).changes
    assert not apply_description(
        admin, parse_description(f"{text}drops: [{drop}]\n"), apply=True
    ).changes


def test_grants_are_no_part_of_it(admin: Actor) -> None:
    """Who may do what is not for a document to say."""
    text = ruled()
    apply_description(admin, parse_description(text), apply=True)
    cluster, zoe = Cluster.objects.get(), User.objects.create_user("zoe")
    Grant.objects.create(user=zoe, cluster=cluster, role="approver", granted_at=timezone.now())
    assert "zoe" not in as_yaml(description_of(cluster))
    assert not apply_description(admin, parse_description(text), apply=True).changes
    assert Grant.objects.get().role == "approver"


def test_what_commands_change_of_a_live_query_is_brought_up_to_date(admin: Actor) -> None:
    """Retention, tasks and key grouping, as the pages change them; and then nothing differs."""
    apply_description(admin, parse_description(MERGED), apply=True)
    after = "tasks: 4\n  key_grouping: key\n  retention_s: 3600"
    text = MERGED.replace("tasks: 8\n  key_grouping: partial_key", after)
    text = text.replace("stop: 6}", "stop: 3}").replace("first: 6, stop: 8", "first: 3, stop: 4")
    other = parse_description(text)
    report = apply_description(admin, other, apply=True)
    assert {(d.name, d.field) for d in report.differences} >= {
        ("e", "tasks"), ("e", "key_grouping"), ("e", "retention_s"),
    }  # fmt: skip
    query = Query.objects.get(name="e")
    assert (query.task_count, query.key_grouping, query.retention_s) == (4, "key", 3600)
    assert apply_description(admin, other, apply=True).changes == 0
