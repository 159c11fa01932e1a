"""One verdict on a cluster: the fleet, the navigation, the bell and the cluster's page agree."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.models import Cluster, Decision
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
    levels = {match[1] or "unknown" for match in (*chips, *dots, headline) if match}
    words = {match[2].strip() for match in chips if match}
    bells = {int(bell) for html in (fleet, page)
             for bell in re.findall(r"<span data-firing>(\d+)<", html)}  # fmt: skip
    needing = re.search(r": (\d) of 1 need you<", fleet)
    assert (needing is not None) == (bells != {0})
    assert (len(levels), len(words), len(bells)) == (1, 1, 1), (levels, words, bells)
    return levels.pop(), words.pop(), bells.pop()


def test_a_limit_counts_once_its_alert_fires(operating: Client) -> None:
    cluster = fleet_cluster("bad", **EXCEEDED)
    assert verdicts(operating) == ("warn", "1 limit exceeded", 0)
    firing(cluster)
    assert verdicts(operating) == ("bad", "1 limit exceeded", 1)
    firing(cluster, "sinks", detail="Sink s is 90 s behind")
    assert verdicts(operating) == ("bad", "2 limits exceeded", 2)


def test_a_monitor_that_is_not_ok_is_part_of_the_verdict(operating: Client) -> None:
    cluster = fleet_cluster("bad")
    decided(cluster, "no_planner", seconds_ago=90)
    assert verdicts(operating) == ("good", "all limits kept", 0)
    decided(cluster, "cooldown")
    assert verdicts(operating) == ("warn", "1 monitor not OK", 0)
    assert "Skew of q 50 %" in operating.get("/clusters/bad/").content.decode()


@pytest.mark.parametrize("state", ["catching up", "degraded", "crash loop"])
def test_a_state_is_the_same_on_all_pages(operating: Client, state: str) -> None:
    fleet_cluster("bad")
    Cluster.objects.update(state=state)
    assert verdicts(operating)[0] != "good"


def test_values_of_the_first_minute_are_data(operating: Client) -> None:
    cluster = Cluster.objects.create(
        slug="bad", name="Bad", desired="running", state="running", last_sample_at=timezone.now()
    )
    for t in even_times(timezone.now(), 10, 3):
        add_measures(cluster, t, {"records_in": 50.0, "latency_p95": 900.0}, 10)
    assert verdicts(operating) == ("unknown", "in the first minute", 0)
    assert "without data" not in operating.get("/").content.decode()
