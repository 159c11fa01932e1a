"""Weir shows its own health: which process is silent since when, and what that holds up."""

import json
import re
from typing import Any

import pytest
import redis
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from controlplane.access.roles import Actor
from controlplane.connections import redis_client
from controlplane.events.task_names import QUEUED_MS, QUEUES, queue_key
from controlplane.health.liveness.readings import read_site
from controlplane.health.liveness.status import (
    computation_waits_for,
    execution_waits_for,
    full_status,
    site_status,
)
from controlplane.models import Cluster, Execution, Proposal
from controlplane.processes.runtime.beats import (
    BEATS,
    FORGOTTEN_MS,
    ChildReport,
    beat,
    forget_instances,
    last_beats,
    now_ms,
    record_children,
)
from controlplane.processes.runtime.leases import AGENTS, Leases, key_of
from controlplane.processes.runtime.process_kinds import (
    DRIVER,
    EXECUTION,
    PROCESSES,
    RELAY,
    WORKER,
    ProcessKind,
)
from controlplane.proposals.executions.progress import waiting_for
from controlplane.wire.keys import driver_key
from tests.controlplane.api.callers import get, granted, scripted
from tests.dashboard.conftest import browser_of
from tests.support.heartbeats import KINDS, send_heartbeats
from tests.support.redis_server import free_port

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client_of_redis(redis_url: str) -> "redis.Redis":
    """The site's Redis, in which all processes have just sent a heartbeat."""
    client = redis_client()
    send_heartbeats(client)
    return client


def silence(client: "redis.Redis", kind: ProcessKind, seconds: float = 95) -> None:
    """Let the last heartbeat of a kind be old."""
    client.hset(BEATS, f"{kind.name}/{kind.name}-1", now_ms() - round(seconds * 1000))
    read_site(fresh=True)


def ready(client: Client) -> tuple[int, dict[str, Any]]:
    """Return status and content of /readyz."""
    read_site(fresh=True)
    response = client.get("/readyz")
    return response.status_code, response.json()


def test_every_queue_has_a_declared_process() -> None:
    """Else nobody would notice that its worker is silent."""
    assert sorted(kind.queue for kind in PROCESSES if kind.queue) == sorted(QUEUES)
    assert len({kind.name for kind in PROCESSES}) == len(PROCESSES)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_silent_process_is_named_with_its_effect(
    client_of_redis: "redis.Redis", client: Client, kind: ProcessKind
) -> None:
    """Anonymous probes receive 503 if it is essential; all else stays 200."""
    assert ready(client) == (200, {"ready": True, "missing": []})
    silence(client_of_redis, kind)
    (status,) = site_status().silent
    assert status.kind == kind
    assert 95 <= (status.silent_s or 0) < 120
    assert kind.effect in site_status().problems[0]
    code, content = ready(client)
    is_missing = kind.is_essential and kind.name != "web"
    assert code == (503 if is_missing else 200)
    assert [row["process"] for row in content["missing"]] == [kind.name] * is_missing
    assert client.get("/healthz").status_code == 200


def test_an_execution_names_the_process_that_it_waits_for(
    client_of_redis: "redis.Redis", sf: Cluster
) -> None:
    """`waits` was empty with all workers stopped."""
    send_heartbeats(client_of_redis, [sf])
    read_site(fresh=True)
    assert execution_waits_for(sf) == ""
    for kind in EXECUTION:
        silence(client_of_redis, kind)
        proposal = Proposal(cluster=sf, state=Proposal.State.EXECUTING)
        assert kind.effect in waiting_for(proposal, "100 bytes/s are allowed")
        beat(client_of_redis, kind.name, f"{kind.name}-1")
        read_site(fresh=True)
    client_of_redis.delete(driver_key(sf.slug))
    assert DRIVER.effect in execution_waits_for(sf)
    assert computation_waits_for() == ""
    silence(client_of_redis, WORKER)
    assert WORKER.effect in waiting_for(Proposal(cluster=sf, state=Proposal.State.COMPUTING))
    assert waiting_for(Proposal(cluster=sf, state=Proposal.State.READY)) == ""


def test_proposals_and_the_cluster_page_name_the_process_that_an_execution_waits_for(
    client_of_redis: "redis.Redis", sf: Cluster, viewer: Actor
) -> None:
    """Not the stored reason alone, which nobody writes while no process runs."""
    send_heartbeats(client_of_redis, [sf])
    proposal = Proposal.objects.create(
        cluster=sf, state="executing", requested_at=timezone.now(), seal="0" * 64, approved_by="a"
    )
    Execution.objects.create(
        proposal=proposal, cluster=sf, started_at=timezone.now(), waits="100 bytes/s are allowed"
    )
    script, browser, aside = (
        scripted(viewer),
        browser_of(viewer),
        reverse("cluster-cards", args=[sf.slug]),
    )
    path = f"/clusters/{sf.slug}/proposals"
    read_site(fresh=True)
    assert get(script, f"{path}/{proposal.pk}").json()["waits"] == "100 bytes/s are allowed"
    silence(client_of_redis, RELAY)
    assert RELAY.effect in get(script, path).json()["proposals"][0]["waits"]
    part = browser.get(aside, headers={"HX-Request": "true"})
    assert RELAY.effect in part.content.decode()
    Proposal.objects.update(state=Proposal.State.DONE)
    assert get(script, f"{path}/{proposal.pk}").json()["waits"] == ""


def test_pages_api_and_metrics_show_it(
    client_of_redis: "redis.Redis", sf: Cluster, viewer: Actor
) -> None:
    silence(client_of_redis, RELAY)
    ended = ChildReport("lab", 5, "ended with code 1", now_ms() + 30_000)
    record_children(client_of_redis, [ended])
    header = {"headers": {QUEUED_MS: now_ms() - 120_000}}
    client_of_redis.lpush(queue_key("weir"), json.dumps(header))
    client_of_redis.lpush(queue_key("weir"), json.dumps({"headers": {QUEUED_MS: now_ms()}}))
    Cluster.objects.update(desired=Cluster.Desired.RUNNING)
    script, browser = scripted(viewer), browser_of(viewer)
    health = get(script, "/health").json()
    states = {row["process"]: row["state"] for row in health["processes"]}
    assert not health["ready"]
    assert (states["relay"], states["driver"], states["worker"]) == ("silent", "silent", "running")
    assert [row["name"] for row in health["children"]] == ["lab"]
    assert len(health["problems"]) == 4, "relay, driver, restarting lab, overdue queue"
    (queue,) = [row for row in health["queues"] if row["name"] == "weir"]
    assert queue["length"] == 2
    assert queue["oldest_s"] >= 120
    metrics = script.get("/metrics").content.decode()
    assert 'weir_process_up{cluster="",process="relay"} 0.0' in metrics
    assert 'weir_process_up{cluster="sf",process="driver"} 0.0' in metrics
    assert 'weir_process_failures{child="lab"} 5.0' in metrics
    assert 'weir_queue_oldest_seconds{queue="weir"} 12' in metrics
    page = browser.get("/").content.decode()
    assert page.count('id="system-banner"') == 1
    assert RELAY.effect in page
    assert RELAY.effect in browser.get(reverse("system-banner")).content.decode()
    assert 'data-process="relay"' in browser.get(reverse("system")).content.decode()


def test_without_redis_everything_says_so(
    sf: Cluster, viewer: Actor, client: Client, settings: Settings
) -> None:
    """No page and no endpoint answers 500."""
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    code, content = ready(client)
    assert code == 503
    assert [row["process"] for row in content["missing"]] == ["redis"]
    status = full_status([sf])
    assert {
        row.state for row in status.processes if row.kind.name not in ("redis", "database")
    } == {"unknown"}
    assert "Redis" in execution_waits_for(sf)
    script, browser = scripted(viewer), browser_of(viewer)
    assert get(script, "/health").json()["queues"] == []
    assert "weir_redis_up 0.0" in script.get("/metrics").content.decode()
    for path in ("/", reverse("system"), reverse("system-banner")):
        assert browser.get(path).status_code == 200
    since = read_site(fresh=True).lost_ms
    assert read_site(fresh=True).lost_ms == since, "since the first failure"


def test_a_member_of_one_cluster_sees_its_driver_alone(
    client_of_redis: "redis.Redis", sf: Cluster
) -> None:
    Cluster.objects.create(slug="nyc", name="NYC")
    Cluster.objects.update(desired=Cluster.Desired.RUNNING)
    rows = get(scripted(granted("viewer", sf)), "/health").json()["processes"]
    assert [row["cluster"] for row in rows if row["process"] == "driver"] == ["sf"]
    assert Client().get("/api/v1/health").status_code == 401


def test_a_running_cluster_names_the_host_of_its_agent(
    client_of_redis: "redis.Redis", redis_url: str, sf: Cluster, viewer: Actor
) -> None:
    """Of a stopped one, and after the end of a lease, there is none."""

    def shown() -> tuple[str, str]:
        read_site(fresh=True)
        rows = get(scripted(viewer), "/health").json()["processes"]
        page = browser_of(viewer).get(reverse("cluster", args=[sf.slug])).content.decode()
        named = re.search(r'<span id="host"[^>]*>([^<]*)<', page)
        return "".join(row["host"] for row in rows), named[1] if named else ""

    Leases(redis_url, AGENTS, "host-1:ab").step([sf.slug])
    assert shown() == ("", "")
    Cluster.objects.update(desired=Cluster.Desired.RUNNING)
    assert shown() == ("host-1", "host-1")
    client_of_redis.hset(key_of(AGENTS), sf.slug, f"host-2:cd 7 {now_ms() - 1}")
    assert shown() == ("", "")
    client_of_redis.set(key_of(AGENTS), "of another type")
    assert shown() == ("", "")


def test_old_instances_are_forgotten_but_not_the_last(client_of_redis: "redis.Redis") -> None:
    """Else each restart of a web without a runner would leave a field."""
    client_of_redis.delete(BEATS)
    old = now_ms() - FORGOTTEN_MS - 1000
    fields = {"web/7": old, "web/8": old + 1, "relay": old}
    client_of_redis.hset(BEATS, mapping={name: str(at_ms) for name, at_ms in fields.items()})
    forget_instances(client_of_redis, now_ms())
    assert set(last_beats(client_of_redis)) == {"web/8", "relay"}


def test_a_nearly_full_redis_is_a_problem(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        used = int(client.info("memory")["used_memory"])
        client.config_set("maxmemory", round(used * 1.05))
        try:
            full = site_status(fresh=True)
            client.config_set("maxmemory", used * 10)
            roomy = site_status(fresh=True)
        finally:
            client.config_set("maxmemory", 0)
    assert (full.memory.share or 0) > 0.9
    assert (roomy.memory.share or 1) < 0.9
    assert len(full.problems) == len(roomy.problems) + 1
