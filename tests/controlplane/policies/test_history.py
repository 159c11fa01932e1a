"""Changes of a policy are listed from the audit log, and can be reverted one by one."""

from datetime import time

import pytest

from controlplane.access.roles import Actor
from controlplane.errors import Invalid, NotFound
from controlplane.models import AuditEntry, Cluster
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import (
    MOST_CHANGES,
    changes_of,
    policy_of,
    revert_change,
    update_policy,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_changes_are_listed_newest_first(admin: Actor, sf: Cluster) -> None:
    for seconds in range(60, 60 + MOST_CHANGES + 1):
        update_policy(admin, sf, {"cooldown_s": seconds}, f"to {seconds}")
    changes = changes_of(sf)
    assert [change.after for change in changes] == [
        {"cooldown_s": seconds} for seconds in range(60 + MOST_CHANGES, 60, -1)
    ]
    assert (changes[0].actor, changes[0].reason) == (admin.name, f"to {60 + MOST_CHANGES}")
    assert changes_of(sf, limit=1) == changes[:1]


def test_a_reverted_change_leaves_later_ones(admin: Actor, sf: Cluster) -> None:
    update_policy(admin, sf, {"cooldown_s": 60, "auto_from": "08:00", "auto_until": "17:00"})
    first = changes_of(sf)[0]
    update_policy(admin, sf, {"auto_moves": 7})
    assert policy_of(sf).auto_from == time(8)
    policy = revert_change(admin, sf, first.pk)
    assert policy == PolicySettings(auto_moves=7)
    assert policy_of(sf) == policy
    newest = changes_of(sf)[0]
    assert newest.before == first.after
    assert first.actor in newest.reason
    revert_change(admin, sf, newest.pk)
    assert policy_of(sf).cooldown_s == 60


def test_a_change_that_is_reverted_already_changes_nothing(admin: Actor, sf: Cluster) -> None:
    update_policy(admin, sf, {"cooldown_s": 60})
    change = changes_of(sf)[0]
    revert_change(admin, sf, change.pk)
    revert_change(admin, sf, change.pk)
    assert len(changes_of(sf)) == 2


def test_changes_of_another_cluster_are_not_reverted(admin: Actor, sf: Cluster) -> None:
    update_policy(admin, sf, {"cooldown_s": 60})
    change = changes_of(sf)[0]
    other = Cluster.objects.create(slug="other", name="Other", slots=1, splits=1)
    with pytest.raises(NotFound):
        revert_change(admin, other, change.pk)
    login = AuditEntry.objects.exclude(action="policy.change").first()
    with pytest.raises(NotFound):
        revert_change(admin, sf, login.pk if login is not None else 0)
    assert policy_of(sf).cooldown_s == 60


def test_values_that_do_not_fit_the_present_settings_change_nothing(
    admin: Actor, sf: Cluster
) -> None:
    window = {"auto_from": "08:00", "auto_until": "17:00"}
    update_policy(admin, sf, {"auto_from": "08:00", "auto_until": "12:00"})
    update_policy(admin, sf, window)
    only_end = changes_of(sf)[0]
    assert set(only_end.before) == {"auto_until"}
    update_policy(admin, sf, {"auto_from": None, "auto_until": None})
    with pytest.raises(Invalid) as refusal:
        revert_change(admin, sf, only_end.pk)
    assert set(refusal.value.fields) <= set(window)
    assert policy_of(sf).auto_until is None
