"""The report on the keys of a query, from samples in Redis."""

from datetime import UTC, datetime, timedelta

import pytest

from algorithms.partitioning.catalog import grouping_text
from controlplane.access.roles import Actor
from controlplane.models import Cluster, Node, Query
from controlplane.planners.partitioning import key_report
from controlplane.planners.partitioning.key_report import LISTED_KEYS, read_key_report
from controlplane.planners.partitioning.skew_history import record
from controlplane.topology.key_groupings import set_key_grouping
from tests.support.cluster import placed_split
from tests.support.key_samples import EVEN, sampled

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.fixture
def query(operator: Actor, sf: Cluster) -> Query:
    """A query with a key grouping: 8 tasks, two on each of 4 nodes of 500 records/s."""
    return placed_split(operator, sf, "q", "key")


def test_without_samples_the_report_has_the_tasks_only(query: Query) -> None:
    report = read_key_report(query, now=NOW)
    assert (report.query, report.sampled_at, report.span_s) == ("q", None, 600)
    assert [(task.task, task.capacity, task.records_per_s) for task in report.tasks] == [
        (task, 250.0, 0.0) for task in range(8)
    ]
    assert (report.keys, report.groupings, report.recommended) == ((), (), "")
    assert (report.distinct, report.exponent, report.replay_error) == (0, None, None)
    sampled(query, NOW - timedelta(minutes=11))
    assert read_key_report(query, now=NOW).sampled_at is None


def test_keys_have_shares_and_tasks(query: Query) -> None:
    sampled(query, NOW)
    report = read_key_report(query, now=NOW)
    assert report.sampled_at == NOW
    assert report.sampled == 30 * 1_000
    assert report.records_per_s == pytest.approx(1_000, rel=0.01)
    first = report.keys[0]
    assert (first.label, len(report.keys)) == ("taxi", LISTED_KEYS)
    assert first.share == pytest.approx(0.4)
    assert first.records_per_s == pytest.approx(400, rel=0.01)
    assert list(first.tasks.values()) == [1.0]
    assert (report.distinct, report.memory, report.pairs_per_key) == (301, 301, 1.0)
    assert report.exponent is not None


def test_loads_and_imbalance_are_measured(query: Query) -> None:
    sampled(query, NOW, EVEN, shares=[0.3, *[0.1] * 7])
    report = read_key_report(query, now=NOW)
    assert [round(task.records_per_s) for task in report.tasks] == [300, *[100] * 7]
    assert report.imbalance == pytest.approx(1.2 - (1.2 + 7 * 0.4) / 8)
    assert report.tasks[0].node_name == f"node {report.tasks[0].node}"


def test_loads_and_tasks_of_keys_are_those_of_the_last_minute(query: Query) -> None:
    sampled(query, NOW - timedelta(seconds=61), EVEN, shares=[1.0, *[0.0] * 7])
    sampled(query, NOW, EVEN, seconds=60, shares=[0.0, 1.0, *[0.0] * 6])
    report = read_key_report(query, now=NOW)
    assert [round(task.records_per_s) for task in report.tasks] == [0, 1_000, *[0] * 6]
    assert report.sampled == 90 * 900


def test_samples_of_several_split_nodes_belong_together(query: Query) -> None:
    """Of 240 samples half are read: whole batches, or the rate would be that of a part."""
    sampled(query, NOW, splits=2, seconds=120)
    report = read_key_report(query, now=NOW)
    (present,) = [row for row in report.groupings if row.in_use]
    assert report.records_per_s == pytest.approx(1_000, rel=0.01)
    assert report.sampled == 60 * 2 * 1_000
    assert present.imbalance == pytest.approx(report.imbalance, rel=0.05)


def test_groupings_are_replayed(query: Query) -> None:
    sampled(query, NOW)
    report = read_key_report(query, now=NOW)
    (present,) = [row for row in report.groupings if row.in_use]
    (recommended,) = [row for row in report.groupings if row.recommended]
    assert (present.name, present.text, present.pairs_per_key) == ("key", "", 1.0)
    assert present.imbalance > 0.9
    assert report.recommended == recommended.name != "key"
    assert recommended.imbalance < 0.1
    assert all(len(row.loads) == 8 for row in report.groupings)
    assert all(sum(row.loads) == pytest.approx(1.0) for row in report.groupings)
    assert {row.text: row.text for row in report.groupings} == {
        grouping_text(row.name, row.parameters): row.text for row in report.groupings
    }
    assert report.replay_error is not None
    assert report.replay_error < 0.05


def test_replays_are_computed_once_a_minute(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[datetime] = []
    original = key_report._replayed

    def counted(*args: object) -> object:
        computed.append(args[-1])  # type: ignore[arg-type]
        return original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(key_report, "_replayed", counted)
    sampled(query, NOW + timedelta(seconds=70), seconds=90)
    for second in (0, 30, 59, 60, 61):
        read_key_report(query, now=NOW + timedelta(seconds=second))
    assert computed == [NOW, NOW + timedelta(seconds=60)]
    Node.objects.filter(cluster=query.cluster).update(capacity=900)
    query.refresh_from_db()
    read_key_report(Query.objects.get(pk=query.pk), now=NOW + timedelta(seconds=62))
    assert len(computed) == 3


def test_a_change_of_the_key_grouping_replays_at_once(operator: Actor, query: Query) -> None:
    sampled(query, NOW)
    assert read_key_report(query, now=NOW).groupings
    changed = set_key_grouping(operator, query, "random_choices", {"eps": 0.5})
    report = read_key_report(changed, now=NOW)
    (present,) = [row for row in report.groupings if row.in_use]
    assert (present.name, dict(present.parameters)) == ("random_choices", {"eps": 0.5})
    assert report.pairs_per_key > 1.0


def test_a_query_without_aggregator_has_replays_but_no_recommendation(
    operator: Actor, sf: Cluster
) -> None:
    query = placed_split(operator, sf, "fixed")
    sampled(query, NOW)
    report = read_key_report(query, now=NOW)
    assert len(report.groupings) > 5
    assert report.recommended == ""
    assert [row.name for row in report.groupings if row.in_use] == ["key"]


def test_samples_of_another_number_of_tasks_count_for_keys_only(query: Query) -> None:
    sampled(query, NOW, tasks=3)
    report = read_key_report(query, now=NOW)
    assert report.keys
    assert [task.records_per_s for task in report.tasks] == [0.0] * 8
    assert (report.imbalance, report.replay_error) == (0.0, None)


def test_an_ended_query_keeps_its_keys_for_a_while(query: Query) -> None:
    sampled(query, NOW)
    query.tasks.all().delete()
    report = read_key_report(query, now=NOW)
    assert (report.keys[0].label, report.tasks, report.groupings) == ("taxi", [], ())
    assert (report.imbalance, report.memory, report.replay_error) == (0.0, 301, None)


def test_the_history_is_part_of_the_report(sf: Cluster, query: Query) -> None:
    sampled(query, NOW)
    Cluster.objects.filter(pk=sf.pk).update(desired="running")
    record(sf, NOW + timedelta(seconds=1))
    soon = NOW + timedelta(seconds=1)
    (first, second) = read_key_report(query, history_s=600, now=soon).history
    assert (second.time - first.time, second.grouping) == (timedelta(seconds=10), "key")
    assert second.top_share == pytest.approx(0.4)
    later = read_key_report(query, now=NOW + timedelta(hours=1))
    assert (later.sampled_at, len(later.history)) == (None, 1)
    assert read_key_report(query, history_s=60, now=NOW + timedelta(hours=1)).history == []


def test_a_key_without_text_has_its_hash(query: Query) -> None:
    keys = {f"k{i:02}": 100 - i if i < 35 else 200 for i in range(36)}
    sampled(query, NOW, keys)
    labels = [key.label for key in read_key_report(query, now=NOW).keys]
    assert len(labels[0]) == 16
    int(labels[0], 16)
    assert all(label.startswith("k") for label in labels[1:])
