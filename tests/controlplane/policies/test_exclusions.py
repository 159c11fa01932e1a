"""Exclusions have a subject that exists, an owner, a reason and an end."""

from datetime import timedelta

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.errors import Forbidden, Invalid, NotFound
from controlplane.models import AuditEntry, Cluster, Exclusion
from controlplane.policies import exclusions
from controlplane.policies.exclusions import (
    add_exclusion,
    live_exclusions,
    prune_exclusions,
    remove_exclusion,
)
from tests.support.cluster import actor, placed
from tests.support.execution import moved_names, ready, scattered

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


def test_it_keeps_plans_off_until_it_expires(operator: Actor, sf: Cluster) -> None:
    """A plan computed meanwhile leaves the subject where it is."""
    cluster = scattered(operator, sf)
    moved = set(moved_names(ready(operator, cluster)))
    shielded = sorted(moved)[0]
    now = timezone.now()
    add_exclusion(operator, cluster, "query", shielded, "being watched", now + HOUR)
    assert shielded not in set(moved_names(ready(operator, cluster)))
    Exclusion.objects.update(expires_at=now - HOUR)
    assert prune_exclusions(now) == 1
    assert shielded in set(moved_names(ready(operator, cluster)))
    entry = AuditEntry.objects.filter(action="exclusion.expire").get()
    assert entry.actor == "weir"
    assert entry.before["owner"] == operator.name


@pytest.mark.parametrize(
    ("kind", "subject"), [("node", "node 1"), ("stream", "s0"), ("query", "q")]
)
def test_each_kind_of_subject_is_checked(
    operator: Actor, sf: Cluster, kind: str, subject: str
) -> None:
    placed(operator, sf, {"q": ["s0"]})
    until = timezone.now() + HOUR
    add_exclusion(operator, sf, kind, subject, "why not", until)
    with pytest.raises(Invalid) as refused:
        add_exclusion(operator, sf, kind, "ghost", "why not", until)
    assert refused.value.fields == {"subject": [f"SF has no {kind} ghost"]}
    assert Exclusion.objects.count() == 1


def test_said_again_it_has_a_new_end(operator: Actor, sf: Cluster) -> None:
    second, now = actor("operator", "second"), timezone.now()
    add_exclusion(operator, sf, "node", "node 1", "repair", now + HOUR)
    add_exclusion(second, sf, "node", "node 1", "still in repair", now + 2 * HOUR)
    row = live_exclusions(sf, now).get()
    assert (row.owner, row.reason, row.expires_at) == (
        second.name, "still in repair", now + 2 * HOUR,
    )  # fmt: skip
    entry = AuditEntry.objects.filter(action="exclusion.add").order_by("-id")[0]
    assert entry.before["reason"] == "repair"


@pytest.mark.parametrize(
    ("kind", "reason", "days", "field"),
    [
        ("planet", "x", 1, "kind"),
        ("node", " ", 1, "reason"),
        ("node", "x", -1, "expires_at"),
        ("node", "x", 91, "expires_at"),
    ],
)
def test_what_makes_no_exclusion_is_refused(
    operator: Actor, sf: Cluster, kind: str, reason: str, days: int, field: str
) -> None:
    until = timezone.now() + timedelta(days=days)
    with pytest.raises(Invalid) as refused:
        add_exclusion(operator, sf, kind, "node 1", reason, until)
    assert list(refused.value.fields) == [field]


def test_it_is_lifted_once(operator: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(exclusions, "announce", lambda _, event: shown.append(event["text"]))
    until = timezone.now() + HOUR
    row = add_exclusion(operator, sf, "node", "node 1", "x", until)
    remove_exclusion(operator, sf, row.pk, "done")
    assert shown == [
        f"{operator.name} excluded node node 1",
        f"{operator.name} lifted the exclusion of node node 1",
    ]
    added, removed = AuditEntry.objects.filter(action__startswith="exclusion.").order_by("id")
    assert (added.action, added.after) == ("exclusion.add", removed.before)
    assert (removed.action, removed.reason) == ("exclusion.remove", "done")
    with pytest.raises(NotFound):
        remove_exclusion(operator, sf, row.pk)


def test_operators_of_the_cluster_alone_exclude(
    viewer: Actor, operator: Actor, sf: Cluster
) -> None:
    until = timezone.now() + HOUR
    row = add_exclusion(operator, sf, "node", "node 1", "x", until)
    with pytest.raises(Forbidden):
        add_exclusion(viewer, sf, "node", "node 1", "x", until)
    with pytest.raises(Forbidden):
        remove_exclusion(viewer, sf, row.pk)
    assert Exclusion.objects.get() == row


def test_an_end_has_a_time_zone(operator: Actor, sf: Cluster) -> None:
    until = (timezone.now() + HOUR).replace(tzinfo=None)
    with pytest.raises(Invalid) as refused:
        add_exclusion(operator, sf, "node", "node 1", "x", until)
    assert list(refused.value.fields) == ["expires_at"]


def test_an_exclusion_lasts_up_to_its_end_and_ninety_days(operator: Actor, sf: Cluster) -> None:
    now = timezone.now()
    row = add_exclusion(operator, sf, "node", "node 1", "x", now + timedelta(days=90))
    assert not live_exclusions(sf, row.expires_at).exists()
    assert live_exclusions(sf, row.expires_at - timedelta(microseconds=1)).get() == row
    assert prune_exclusions(row.expires_at - timedelta(microseconds=1)) == 0
    assert prune_exclusions(row.expires_at) == 1
