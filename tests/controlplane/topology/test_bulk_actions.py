"""Bulk actions: ended queries of a filter, progress, cancellation, restored queries."""

from datetime import timedelta

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Conflict, Invalid, NotFound
from controlplane.models import AuditEntry, BulkAction, Cluster, Query
from controlplane.topology import bulk_actions, placement, queries
from controlplane.topology.bulk_actions import (
    cancel,
    continue_action,
    end_matching,
    end_named,
    restore,
    restore_named,
)
from tests.support import cluster as made

STREAMS = {"a": ["s0"], "b": ["s0", "s1"], "c": ["s5"]}


@pytest.fixture
def sf(operator: Actor) -> Cluster:
    cluster = made.small_cluster(operator)
    made.placed(operator, cluster, STREAMS)
    return cluster


def states(cluster: Cluster) -> dict[str, str]:
    return dict(Query.objects.filter(cluster=cluster).order_by("pk").values_list("name", "state"))


def test_the_queries_of_a_filter_end(operator: Actor, sf: Cluster) -> None:
    action = end_matching(operator, sf, "stream:s0", 2, "night")
    assert (action.state, action.total, action.done) == ("done", 2, 2)
    assert states(sf) == {"a": "ending", "b": "ending", "c": "running"}
    entry = AuditEntry.objects.filter(action="query.end").latest("pk")
    assert (entry.reason, entry.after["queries"]) == ("night", 2)


def test_more_queries_than_confirmed_are_refused(operator: Actor, sf: Cluster) -> None:
    with pytest.raises(Conflict) as refused:
        end_matching(operator, sf, "", 2)
    assert refused.value.data == {"confirmed": 2, "queries": 3}
    with pytest.raises(Invalid):
        end_matching(operator, sf, "name:none", 9)
    assert set(states(sf).values()) == {"running"}


def test_many_queries_end_part_by_part_and_can_be_cancelled(
    operator: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_BULK", 2)
    monkeypatch.setattr(bulk_actions, "PART", 1)
    action = end_matching(operator, sf, "", 3)
    # The worker has not begun.
    assert (action.state, action.done) == ("running", 0)
    assert bulk_actions._end_part(action.pk)
    action = cancel(operator, sf, action.pk)
    continue_action(action.pk)
    assert (action.state, action.done) == ("cancelled", 1)
    assert sorted(states(sf).values()) == ["ending", "running", "running"]
    with pytest.raises(Conflict) as over:
        cancel(operator, sf, action.pk)
    assert over.value.code == "not_running"
    again = end_matching(operator, sf, "", 3)
    continue_action(again.pk)
    continue_action(again.pk)
    again.refresh_from_db()
    assert (again.state, again.done) == ("done", 2)


def test_queries_submitted_after_the_start_are_not_ended(
    operator: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "MAX_BULK", 2)
    action = end_matching(operator, sf, "", 3)
    later = action.requested_at + timedelta(seconds=1)
    Query.objects.filter(cluster=sf, name="c").update(submitted_at=later)
    continue_action(action.pk)
    assert states(sf)["c"] == "running"


def test_ended_queries_are_restored_once(operator: Actor, sf: Cluster) -> None:
    Query.objects.filter(name="b").update(incarnation=4, retention_windows=77)
    action = end_named(operator, sf, ["a", "b"], "by mistake")
    with pytest.raises(Conflict) as early:
        restore(operator, sf, action.pk)
    assert early.value.code == "still_ending"
    placement.place_pending(sf.pk)
    undone = restore(operator, sf, action.pk)
    assert (undone.kind, undone.total, undone.done, undone.failed) == ("restore", 2, 2, 0)
    old, new = Query.objects.filter(cluster=sf, name="b").order_by("pk")
    assert (old.state, new.state, new.incarnation) == ("ended", "pending", 5)
    assert (new.text, new.retention_windows) == (old.text, 77)
    names = [list(query.streams.order_by("name").values_list("name", flat=True))
             for query in (old, new)]  # fmt: skip
    assert names == [["s0", "s1"]] * 2
    with pytest.raises(Conflict) as twice:
        restore(operator, sf, action.pk)
    assert twice.value.code == "not_restorable"


def test_a_query_whose_name_is_taken_is_not_restored(operator: Actor, sf: Cluster) -> None:
    action = end_named(operator, sf, ["a", "b"])
    placement.place_pending(sf.pk)
    Query.objects.filter(cluster=sf, name="c").update(name="a")
    undone = restore(operator, sf, action.pk)
    assert (undone.done, undone.failed) == (1, 1)


def test_only_queries_that_ended_lately_are_restored(operator: Actor, sf: Cluster) -> None:
    action = end_named(operator, sf, ["a"])
    placement.place_pending(sf.pk)
    with pytest.raises(Invalid) as missing:
        restore_named(operator, sf, ["a", "c"])
    assert len(missing.value.fields["names"]) == 1
    with pytest.raises(NotFound):
        restore(operator, sf, action.pk + 1)
    assert restore_named(operator, sf, ["a"]).done == 1
    hour_ago = action.requested_at - timedelta(hours=2)
    BulkAction.objects.filter(pk=action.pk).update(finished_at=hour_ago)
    with pytest.raises(Conflict):
        restore(operator, sf, action.pk)
