"""The pages of policy and decisions: who sees what, and what forms do."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import (
    AuditEntry,
    Blackout,
    Cluster,
    Decision,
    Exclusion,
    Policy,
    SeriesPeriod,
)
from controlplane.policies.exclusions import add_exclusion
from controlplane.policies.store import policy_of, policy_row, stored_settings, update_policy
from controlplane.watch import all_loops, watch_cluster
from dashboard.policies.forms import SECTIONS, form_sections
from tests.dashboard.conftest import browser_of
from tests.dashboard.views.test_verbs import said
from tests.support.cluster import actor
from tests.support.watching import measured, reachable

PAGE = "/clusters/sf/policy/"
CHANGE = f"{PAGE}change/"
ADD = ["/clusters/sf/blackouts/add/", "/clusters/sf/exclusions/add/"]


@pytest.fixture
def ruling(admin: Actor) -> Client:
    """An admin's browser."""
    return browser_of(admin)


def form_of(policy: Policy, **changed: Any) -> dict[str, Any]:
    """Return what the browser sends of the form, with some fields typed over."""
    sent: dict[str, Any] = {"stamp": policy.changed_at.isoformat() if policy.changed_at else ""}
    for _, settings in form_sections(stored_settings(policy)):
        for one in settings:
            ticks = one.setting.kind in ("many", "flag")
            sent[one.setting.name] = sorted(one.ticked) if ticks else one.value
    return sent | changed


def test_the_summary_says_what_applies_by_itself(viewing: Client, sf: Cluster) -> None:
    content = viewing.get(PAGE).content.decode()
    assert "moves of tasks and changes of key groupings wait for an approver" in content
    assert ">defaults</span>" in content
    assert "Save policy" not in content
    assert content.count('<table class="values">') == len(SECTIONS)
    assert '<th scope="row">Imbalance above</th><td class="wrap">20 %</td>' in content
    assert 'name="watch_imbalance"' not in content
    assert "blackout-new" not in content


def test_best_values_of_one_plan_are_not_shown_as_the_best_of_each(
    viewing: Client, sf: Cluster
) -> None:
    reachable(sf, 1.5, imbalance=0.16)
    content = viewing.get(PAGE).content.decode()
    assert content.count(">best reachable ") == 1, "the plan has the least replication factor"


def test_an_admin_changes_it(ruling: Client, sf: Cluster) -> None:
    values = form_of(policy_row(sf), auto_gain="12.5", auto_kinds=["migration"], reason="try it")
    answer = ruling.post(CHANGE, values)
    assert answer["Location"] == PAGE
    policy = policy_of(sf)
    assert (policy.auto_gain, policy.auto_kinds) == (0.125, ["migration"])
    entry = AuditEntry.objects.get(action="policy.change")
    assert sorted(entry.after) == ["auto_gain", "auto_kinds"]
    assert entry.reason == "try it"
    content = ruling.get(PAGE).content.decode()
    assert 'name="auto_gain" inputmode="decimal" value="12.5"' in content


def test_what_cannot_be_is_told_at_its_field(ruling: Client, sf: Cluster) -> None:
    answer = ruling.post(CHANGE, form_of(policy_row(sf), auto_gain="150", node_moves="few"))
    content = answer.content.decode()
    assert answer.status_code == 422
    assert "few is not a number" in content
    answer = ruling.post(CHANGE, form_of(policy_row(sf), auto_gain="150"))
    content = answer.content.decode()
    assert 'value="150" aria-invalid="true"' in content
    assert "Must be at most 1" in content
    assert not Policy.objects.exists()


def test_two_admins_do_not_undo_each_other(ruling: Client, admin: Actor, sf: Cluster) -> None:
    """The second is shown what the first has set, and decides again."""
    values = form_of(policy_row(sf), cooldown_s="60")
    update_policy(actor("admin", "first"), sf, {"dead_band": 0.3})
    answer = ruling.post(CHANGE, values)
    assert answer.status_code == 409
    assert "first has changed the policy meanwhile" in answer.content.decode()
    assert policy_of(sf).cooldown_s == 600


@pytest.mark.parametrize("path", [CHANGE, *ADD])
def test_viewers_change_nothing_and_nobody_by_get(
    viewing: Client, operating: Client, sf: Cluster, path: str
) -> None:
    values = form_of(policy_row(sf)) | {"kind": "node", "subject": "node 1", "hours": "1",
                                       "cron": "0 8 * * *", "minutes": "5"}  # fmt: skip
    assert viewing.post(path, values | {"reason": "x"}).status_code == 403
    assert operating.get(path).status_code == 405
    if path != ADD[1]:
        assert operating.post(path, values | {"reason": "x"}).status_code == 403
    assert not Blackout.objects.exists()


def test_blackouts_come_and_go(ruling: Client, sf: Cluster) -> None:
    values = {"how": "cron", "cron": "30 6 * * 1-5", "minutes": "180", "reason": "rush"}
    assert said(ruling.post(ADD[0], values)) == "The blackout was added."
    tomorrow = timezone.now() + timedelta(days=1)
    ends = {"starts_at": "2020-01-01T00:00", "ends_at": f"{tomorrow:%Y-%m-%dT%H:%M}"}
    ruling.post(ADD[0], {"how": "range", "reason": "holidays", **ends})
    content = ruling.get(PAGE).content.decode()
    assert "At 06:30 on Monday through Friday" in content
    assert "in force, ends" in content
    for row in Blackout.objects.all():
        ruling.post(f"/clusters/sf/blackouts/{row.pk}/remove/")
    assert "No blackout" in ruling.get(PAGE).content.decode()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"how": "cron", "cron": "", "minutes": "5"}, "minute hour day month weekday"),
        ({"how": "cron", "cron": "0 8 * * *", "minutes": "x"}, "whole number"),
        ({"how": "range", "starts_at": "x", "ends_at": "y"}, "two moments"),
        ({"how": "range", "starts_at": "2030-01-01T00:00"}, "start and end"),
        ({}, "minute hour day month weekday"),
    ],
)
def test_what_makes_no_blackout_is_told(
    ruling: Client, sf: Cluster, values: dict[str, str], told: str
) -> None:
    assert told in said(ruling.post(ADD[0], values | {"reason": "x"}))


def test_exclusions_come_and_go(operating: Client, sf: Cluster) -> None:
    values = {"kind": "query", "subject": "a", "hours": "2", "reason": "being watched"}
    assert said(operating.post(ADD[1], values)).startswith("No plan moves query a until ")
    assert "being watched" in operating.get(PAGE).content.decode()
    row = Exclusion.objects.get()
    assert "exclusion was deleted" in said(
        operating.post(f"/clusters/sf/exclusions/{row.pk}/remove/")
    )
    assert "Nothing is excluded" in operating.get(PAGE).content.decode()
    told = said(operating.post(ADD[1], values | {"subject": "ghost", "hours": "nan"}))
    assert "has no query ghost" in told
    assert "in the future" in told


def test_what_has_expired_is_not_shown(operating: Client, operator: Actor, sf: Cluster) -> None:
    until = timezone.now() + timedelta(hours=1)
    add_exclusion(operator, sf, "node", "node 1", "repair", until)
    Exclusion.objects.update(expires_at=timezone.now())
    assert "Nothing is excluded" in operating.get(PAGE).content.decode()


def test_before_the_first_look_each_loop_says_so(viewing: Client, sf: Cluster) -> None:
    content = viewing.get("/clusters/sf/decisions/").content.decode()
    assert content.count("Its first evaluation is within ten") == len(all_loops())
    assert "No monitor has decided yet" in content
    assert "Monitors" in viewing.get("/clusters/sf/").content.decode()


def test_the_last_decision_has_number_limit_and_age(viewing: Client, sf: Cluster) -> None:
    now = timezone.now()
    Cluster.objects.filter(pk=sf.pk).update(desired="running")
    sf.refresh_from_db()
    SeriesPeriod.objects.all().delete()
    measured(sf, now, p95=1234.0, loads=[100.0, 50.0, 50.0, 50.0])
    watch_cluster(sf, now)
    for path in ("/clusters/sf/", "/clusters/sf/decisions/"):
        content = viewing.get(path).content.decode()
        assert "balanced" in content
        assert "7.5 %" in content
        assert "1.2 s" in content
        assert "10.0 s" in content, "the limit of the latency"
        assert "now ago" not in content


def test_the_history_is_filtered(viewing: Client, sf: Cluster) -> None:
    now = timezone.now()
    for loop, code in (("latency", "within"), ("imbalance", "cooldown")):
        Decision.objects.create(
            cluster=sf, loop=loop, code=code, text=f"{loop} told", first_at=now, last_at=now
        )
    content = viewing.get("/clusters/sf/decisions/?loop=latency").content.decode()
    assert "latency told" in content
    assert "imbalance told" not in content.partition("Decisions in the time range")[2]
    content = viewing.get("/clusters/sf/decisions/?code=acted").content.decode()
    assert "No decision matches" in content
    rows = viewing.get("/clusters/sf/decisions/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in rows
