"""A policy changes by an admin's word, field by field, and the audit log says from what to what."""

from datetime import time
from typing import Any

import pytest
from django.contrib.auth.models import User

from controlplane.access.roles import Actor
from controlplane.errors import Forbidden, Invalid
from controlplane.models import AuditEntry, Cluster, Grant, Policy
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import policy_of, update_policy
from tests.support.cluster import actor

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_is_not_named_stays(admin: Actor, sf: Cluster) -> None:
    update_policy(admin, sf, {"cooldown_s": 60, "watch": "act"}, "faster")
    update_policy(admin, sf, {"auto_kinds": ["migration", "placement"]})
    policy = policy_of(sf)
    assert (policy.cooldown_s, policy.watch, policy.auto_moves) == (60, "act", 50)
    assert policy.auto_kinds == ["placement", "migration"], "in one order, however they come"
    assert Policy.objects.get().changed_by == admin.name
    first = AuditEntry.objects.filter(action="policy.change").order_by("id")[0]
    assert first.before == {"cooldown_s": 600, "watch": "recommend"}
    assert first.after == {"cooldown_s": 60, "watch": "act"}
    assert first.reason == "faster"


def test_what_changes_nothing_leaves_no_trace(admin: Actor, sf: Cluster) -> None:
    assert update_policy(admin, sf, {"cooldown_s": 600}) == PolicySettings()
    assert not AuditEntry.objects.filter(action="policy.change").exists()
    assert not Policy.objects.exists()


def test_the_admin_of_one_cluster_is_none_of_another(sf: Cluster) -> None:
    by = actor("viewer", "local")
    other = Cluster.objects.create(slug="other", name="Other")
    assert isinstance(by.user, User)
    Grant.objects.create(user=by.user, cluster=sf, role="admin", granted_at=sf.created_at)
    update_policy(by, sf, {"cooldown_s": 60})
    with pytest.raises(Forbidden):
        update_policy(by, other, {"cooldown_s": 60})


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("auto_kinds", ["teleport"], "placement, migration, admission"),
        ("auto_kinds", "placement", "list"),
        ("auto_kinds", [["placement"]], "list"),
        ("auto_days", [7], "0 (Monday) to 6"),
        ("auto_days", [True], "0 (Monday) to 6"),
        ("auto_from", "25:00", "time of day"),
        ("auto_from", "08:00", "start and an end"),
        ("auto_gain", 1.5, "at most 1"),
        ("auto_gain", float("nan"), "finite"),
        ("auto_gain", "much", "number"),
        ("auto_moves", 1.5, "whole number"),
        ("auto_moves", -1, "at least 0"),
        ("auto_bytes", 2**63, "at most"),
        ("four_eyes", "yes", "true or false"),
        ("four_eyes", 1, "true or false"),
        ("approvers", "viewer", "'operator', 'approver' or 'admin'"),
        ("watch", "sometimes", "'off', 'recommend' or 'act'"),
        ("node_moves", 0, "at least 1"),
        ("cooldown_s", 10**9, "at most 604,800"),
        ("watch_replication", -0.1, "at least 0"),
        ("changed_by", "nobody", "no such setting"),
        ("cluster", 1, "no such setting"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_its_field(
    admin: Actor, sf: Cluster, name: str, value: Any, told: str
) -> None:
    with pytest.raises(Invalid) as refused:
        update_policy(admin, sf, {name: value, "cooldown_s": 60} | {name: value})
    (field,) = refused.value.fields
    assert field == ("auto_until" if told == "start and an end" else name)
    assert told in refused.value.fields[field][0]
    assert not Policy.objects.exists(), "nothing of it was saved"


def test_a_window_is_kept_as_times(admin: Actor, sf: Cluster) -> None:
    update_policy(admin, sf, {"auto_from": "22:00", "auto_until": "06:00"})
    assert (policy_of(sf).auto_from, policy_of(sf).auto_until) == (time(22), time(6))
    with pytest.raises(Invalid, match="not valid"):
        update_policy(admin, sf, {"auto_until": "22:00"})
    update_policy(admin, sf, {"auto_from": None, "auto_until": None})
    assert policy_of(sf).auto_from is None


def test_every_setting_can_be_set_to_what_it_is(admin: Actor, sf: Cluster) -> None:
    """The form and PATCH send whole policies: each default passes its own check."""
    update_policy(admin, sf, PolicySettings().to_json())
    assert not Policy.objects.exists()
