"""The changes of a policy on its page, and their reversal there."""

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import Cluster
from controlplane.numbers import MISSING
from controlplane.policies.settings import PolicySettings
from controlplane.policies.store import changes_of, policy_of, update_policy
from dashboard.policies.history import change_rows
from tests.dashboard.conftest import browser_of

pytestmark = pytest.mark.nightly("pages")

PAGE = "/clusters/sf/policy/"


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({"watch_imbalance": 0.14}, ("Imbalance above", "%", "20", "14")),
        ({"watch": "act"}, ("Monitors", "", "recommend", "act")),
        ({"auto_days": [0, 2]}, ("On", "", MISSING, "Monday, Wednesday")),
        ({"auto_kinds": ["migration"]}, ("Kinds of plans", "", "admission, shedding", "migration")),
        ({"close_split_nodes": False}, ("Close split nodes", "", "on", "off")),
    ],
)
def test_a_change_has_the_words_of_the_form(
    admin: Actor, sf: Cluster, changes: dict[str, object], texts: tuple[str, ...]
) -> None:
    update_policy(admin, sf, changes)
    (row,) = change_rows(changes_of(sf), policy_of(sf))
    (one,) = row["settings"]
    assert tuple(one[name] for name in ("label", "unit", "before", "after")) == texts
    assert not row["is_reverted"]


def test_an_admin_reverts_a_change_on_the_page(admin: Actor, sf: Cluster) -> None:
    update_policy(admin, sf, {"watch_imbalance": 0.14}, "evening")
    (change,) = changes_of(sf)
    browser = browser_of(admin)
    assert "evening" in browser.get(PAGE).content.decode()
    answer = browser.post(f"{PAGE}changes/{change.pk}/revert/")
    assert answer["Location"] == PAGE
    assert policy_of(sf) == PolicySettings()
    rows = change_rows(changes_of(sf), policy_of(sf))
    assert [row["is_reverted"] for row in rows] == [False, True]


def test_a_viewer_reads_changes_and_reverts_none(
    viewing: Client, admin: Actor, sf: Cluster
) -> None:
    update_policy(admin, sf, {"watch_imbalance": 0.14})
    (change,) = changes_of(sf)
    assert 'id="changes"' in viewing.get(PAGE).content.decode()
    assert "/revert/" not in viewing.get(PAGE).content.decode()
    assert viewing.post(f"{PAGE}changes/{change.pk}/revert/").status_code == 403
    assert policy_of(sf).watch_imbalance == 0.14
