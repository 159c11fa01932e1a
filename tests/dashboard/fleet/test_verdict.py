"""One verdict on a cluster: the fleet, the navigation, the bell and the cluster's page agree."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.alerts.statuses import cluster_statuses
from controlplane.models import Cluster, Decision
from controlplane.watch import all_loops
from dashboard.clusters.alert_rows import alert_row
from dashboard.clusters.headline import headline_of, state_title
from dashboard.policies.decisions import decision_row
from tests.support.alerting import firing, fleet_cluster
from tests.support.series import add_measures, even_times

pytestmark = pytest.mark.django_db
EXCEEDED: dict[str, Any] = {"latency_p95": 12_000.0}


def decided(cluster: Cluster, code: str, seconds_ago: float = 5) -> None:
    at = timezone.now() - timedelta(seconds=seconds_ago)
    Decision.objects.create(
        cluster=cluster, loop="skew", code=code, number=0.5, limit=0.2, unit="share",
        text="Skew of q 50 %, limit 20 %", first_at=at, last_at=at,
    )  # fmt: skip


def verdicts(client: Client) -> tuple[str, str, int]:
    """Return the level of the cluster, its chip, and the count of the bell, equal everywhere."""
    fleet, page = (client.get(path).content.decode() for path in ("/", "/clusters/bad/"))
    row = fleet[fleet.index('id="row-bad"') :]
    chips = [re.search(r'class="chip ?(\w*)">(?:<svg.*?</svg>)?([^<]*)<', html) for html in
             (row, page[page.index('id="cluster-state"') :])]  # fmt: skip
    dots = [re.search(r'nav-dot-bad"><span class="dot (\w+)"', html) for html in (fleet, page)]
    headline = re.search(r'class="headline (\w*)" id="status"', page)
    bells = [re.search(r"<span data-firing>(\d+)<", html) for html in (fleet, page)]
    found = [match for match in (*chips, *dots, headline, *bells) if match]
    assert len(found) == 7, found
    levels = {match[1] or "unknown" for match in found[:5]}
    words = {match[2].strip() for match in found[:2]}
    counts = {int(match[1]) for match in found[5:]}
    needing = re.search(r": (\d) of 1 need you<", fleet)
    assert (needing is not None) == (counts != {0})
    assert (len(levels), len(words), len(counts)) == (1, 1, 1), (levels, words, counts)
    return levels.pop(), words.pop(), counts.pop()


def test_a_limit_counts_once_its_alert_fires(operating: Client) -> None:
    cluster = fleet_cluster("bad", **EXCEEDED)
    assert verdicts(operating) == ("warn", "1 limit exceeded", 0)
    firing(cluster)
    assert verdicts(operating) == ("bad", "1 limit exceeded", 1)
    firing(cluster, "sinks", detail="Sink s is 90 s behind")
    assert verdicts(operating) == ("bad", "2 limits exceeded", 2)


def test_a_limit_counts_until_its_alert_clears(operating: Client) -> None:
    """A value that moves around its limit does not change the verdict."""
    cluster, now = fleet_cluster("bad", latency_p95=9_900.0), timezone.now()
    alert = firing(cluster, value=9_900.0)
    assert verdicts(operating) == ("bad", "1 alert open", 1)
    headline = headline_of(cluster_statuses(None, now)[0])
    assert headline.why.endswith("the alert ends after 60 s below 9.0 s.")
    alert.within_since = now - timedelta(seconds=59)
    alert.save()
    assert verdicts(operating) == ("bad", "1 alert open", 1)
    alert.state, alert.cleared_at = "cleared", now
    alert.save()
    assert verdicts(operating) == ("warn", "near a limit", 0)


def test_a_monitor_that_is_not_ok_is_part_of_the_verdict(operating: Client) -> None:
    cluster = fleet_cluster("bad")
    decided(cluster, "no_planner", seconds_ago=90)
    assert verdicts(operating) == ("good", "all limits kept", 0)
    decided(cluster, "cooldown")
    assert verdicts(operating) == ("warn", "1 monitor not OK", 0)
    assert "Skew of q 50 %" in operating.get("/clusters/bad/").content.decode()
    Decision.objects.update(loop="ladder")
    headline = headline_of(cluster_statuses(None, timezone.now())[0])
    assert headline.what.endswith(f": {next(o.title for o in all_loops() if o.name == 'ladder')}")


def test_an_alert_whose_value_is_within_its_limit_is_named_as_in_the_list() -> None:
    alert = firing(fleet_cluster("bad"), "node_load", node=3, value=1.2, limit=1.0)
    now = timezone.now()
    headline, row = headline_of(cluster_statuses(None, now)[0]), alert_row(alert, now)
    assert headline.what.startswith(row.title)
    assert row.title.endswith("node 3")
    assert headline.explain == row.subject


def test_no_plan_is_requested_where_none_helps(operating: Client) -> None:
    """Without data it is a process that does not report."""
    cluster = fleet_cluster("bad")
    firing(cluster, "data_age", value=90.0, limit=30.0)
    Cluster.objects.update(last_sample_at=timezone.now() - timedelta(minutes=2))
    for path in ("/", "/clusters/bad/"):
        html = operating.get(path).content.decode()
        assert '<a class="button primary" href="/system/">Check processes</a>' in html
        assert 'class="button primary" href="/clusters/bad/proposals/#request"' not in html


@pytest.mark.parametrize("code", ["stale", "answered"])
def test_a_monitor_that_waits_is_calm_everywhere(operating: Client, code: str) -> None:
    decided(fleet_cluster("bad"), code)
    assert verdicts(operating) == ("good", "all limits kept", 0)
    assert decision_row(Decision.objects.get()).grade == "unknown"


@pytest.mark.parametrize("state", ["catching up", "degraded", "crash loop"])
def test_a_state_is_the_same_on_all_pages(operating: Client, state: str) -> None:
    fleet_cluster("bad")
    Cluster.objects.update(state=state)
    assert verdicts(operating)[0] != "good"


@pytest.mark.parametrize("handled", ["acknowledged", "silenced"])
def test_a_handled_crash_loop_is_still_the_headline(operating: Client, handled: str) -> None:
    cluster, now = fleet_cluster("bad"), timezone.now()
    Cluster.objects.update(state="crash loop")
    ends = {"acknowledged": {"acknowledged_at": now},
            "silenced": {"silenced_until": now + timedelta(hours=1)}}[handled]  # fmt: skip
    firing(cluster, "application", **ends)
    assert verdicts(operating) == ("warn", handled, 0)
    headline = headline_of(cluster_statuses(None, now)[0])
    assert headline.what == state_title(Cluster.objects.get())[0]


def test_values_of_the_first_minute_are_data(operating: Client) -> None:
    cluster = Cluster.objects.create(
        slug="bad", name="Bad", desired="running", state="running", last_sample_at=timezone.now()
    )
    for t in even_times(timezone.now(), 10, 3):
        add_measures(cluster, t, {"records_in": 50.0, "latency_p95": 900.0}, 10)
    assert verdicts(operating) == ("unknown", "in the first minute", 0)
    assert "without data" not in operating.get("/").content.decode()
