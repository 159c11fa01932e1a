"""The loops, the judgement and the approval by the policy, each by its task on a real worker."""

import pytest
from django.utils import timezone

from controlplane.events.task_names import WATCH, send_on_commit
from controlplane.models import Cluster, Proposal
from controlplane.policies.store import update_policy
from controlplane.proposals import requests
from tests.support.cluster import actor, small_cluster
from tests.support.execution import scattered
from tests.support.watching import measured, newest, reachable
from tests.workers.tasks.test_worker import until
from workers.celery import app

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_loop_acts_from_the_figure_to_the_first_step(celery_worker: None) -> None:
    """Trouble is seen, a plan computed, judged, approved by the policy, and begun."""
    by = actor("admin")
    cluster = scattered(by, small_cluster(by))
    update_policy(by, cluster, {"watch": "act", "auto_kinds": ["placement"]})
    measured(cluster, timezone.now(), rf=4.0)
    reachable(cluster, 2.0)
    send_on_commit(WATCH)
    until(lambda: Proposal.objects.filter(state="executing", approved_by="policy").exists())
    assert Proposal.objects.get().requested_by == "watch"
    assert newest(cluster, "replication").code in ("acted", "execution_running")


def test_what_a_person_asked_for_waits_by_default(celery_worker: None) -> None:
    by = actor("operator")
    cluster = scattered(by, small_cluster(by))
    requests.request(by, cluster, "mms", {})
    until(lambda: Proposal.objects.filter(state="ready").exists())
    assert Cluster.objects.get().routing_version == cluster.routing_version


def test_the_beat_calls_the_loops() -> None:
    assert WATCH in {entry["task"] for entry in app.conf.beat_schedule.values()}
