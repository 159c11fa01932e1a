"""Skipping a batch that fails again and again: who may, what is lost, and that it is told."""

import pytest
import redis
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.background import ingestion
from controlplane.errors import Conflict, Invalid
from controlplane.health import stuck_batches
from controlplane.health.stuck_batches import losses_of, stuck_batch
from controlplane.models import AuditEntry, Cluster, DriverRestart, SkippedBatch
from controlplane.wire import attempts, keys
from controlplane.wire.log import open_log
from controlplane.wire.log.values import START, Block
from tests.controlplane.api.callers import get, post, scripted, user_of
from tests.support.cluster import stream_id, telemetry

pytestmark = pytest.mark.django_db(transaction=True)
BATCH = 71


@pytest.fixture
def client(sf: Cluster, redis_url: str) -> "redis.Redis":
    return redis.Redis.from_url(redis_url)


@pytest.fixture
def stuck(sf: Cluster, redis_url: str, client: "redis.Redis") -> Cluster:
    """A cluster of which batch 71, with records of two of three streams, failed three times."""
    log = open_log("", "sf", redis_url)
    s0, s1, s2 = (stream_id(sf, name) for name in ("s0", "s1", "s2"))
    first = log.append({s2: Block(5, b"before", 1)})
    log.append({s0: Block(40, b"tides", 2), s1: Block(2, b"tides", 2)})
    last = log.append({s0: Block(3, b"tides", 3)})
    assert first
    assert last
    log.append({s1: Block(900, b"after", 4)})
    log.close()
    begin(client, first, last, 4)
    return sf


def begin(client: "redis.Redis", start: str, end: str, times: int) -> None:
    plan = attempts.BatchAttempt(BATCH, 0, start, end, 45, version=2)
    for number in range(times):
        attempts.begin(client, "sf", plan, f"driver {number}")


def test_before_three_failures_nothing_can_be_skipped(
    sf: Cluster, client: "redis.Redis", admin: Actor
) -> None:
    begin(client, START, START, 3)
    assert stuck_batch(sf) is None
    with pytest.raises(Conflict) as refusal:
        stuck_batches.skip(admin, sf, BATCH, "no")
    assert refusal.value.code == "not_stuck"
    assert not attempts.is_skipped(client, "sf", BATCH)
    begin(client, START, START, 4)
    assert stuck_batch(sf) is not None
    client.xadd(keys.telemetry_key("sf"), {"t": "{}"}, id=f"{BATCH}-0")
    assert stuck_batch(sf) is None, "it got through"


def test_what_is_lost_is_told_before_and_after(
    stuck: Cluster, client: "redis.Redis", admin: Actor
) -> None:
    found = stuck_batch(stuck)
    assert found is not None
    losses = losses_of(stuck, found.attempt)
    assert (losses.records, losses.total) == ({"s0": 43, "s1": 2}, 45)
    row = stuck_batches.skip(admin, stuck, BATCH, "a bad sensor")
    assert attempts.is_skipped(client, "sf", BATCH)
    assert (row.records, row.total, row.failures) == ({"s0": 43, "s1": 2}, 45, 3)
    again = stuck_batches.skip(admin, stuck, BATCH, "asked again")
    assert (again.pk, again.reason) == (row.pk, "a bad sensor")
    (entry,) = AuditEntry.objects.filter(action="batch.skip")
    assert (entry.actor, entry.reason, entry.after["records"]) == (
        admin.name, "a bad sensor", {"s0": 43, "s1": 2}
    )  # fmt: skip
    ingestion.record(stuck, [telemetry(BATCH, 1_000) | {"skipped": True}])
    row.refresh_from_db()
    assert row.done_at is not None
    assert row.total == 45


def test_a_batch_that_gets_through_after_all_loses_nothing(stuck: Cluster, admin: Actor) -> None:
    row = stuck_batches.skip(admin, stuck, BATCH, "a bad sensor")
    ingestion.record(stuck, [telemetry(BATCH, 1_000)])
    row.refresh_from_db()
    assert row.done_at is not None
    assert (row.records, row.total) == ({}, 0)


def test_a_request_that_redis_lost_is_published_again(
    stuck: Cluster, client: "redis.Redis", admin: Actor
) -> None:
    stuck_batches.skip(admin, stuck, BATCH, "a bad sensor")
    client.delete(keys.skip_key("sf"))
    stuck_batches.publish_pending(stuck)
    assert attempts.is_skipped(client, "sf", BATCH)


def test_who_skips_says_why(stuck: Cluster, admin: Actor) -> None:
    with pytest.raises(Invalid):
        stuck_batches.skip(admin, stuck, BATCH, " ")
    assert not SkippedBatch.objects.exists()


def test_through_the_api(stuck: Cluster, admin: Actor, operator: Actor) -> None:
    told = get(scripted(operator), "/clusters/sf/stuck-batch").json()
    assert (told["stuck"]["batch"], told["stuck"]["records"]) == (BATCH, {"s0": 43, "s1": 2})
    body = {"batch": BATCH, "reason": "a bad sensor"}
    assert post(scripted(operator), "/clusters/sf/stuck-batch/skip", body).status_code == 403
    answer = post(scripted(admin), "/clusters/sf/stuck-batch/skip", body)
    assert (answer.status_code, answer.json()["total"]) == (200, 45)
    other = post(scripted(admin), "/clusters/sf/stuck-batch/skip", body | {"batch": BATCH + 1})
    assert (other.status_code, other.json()["code"]) == (409, "not_stuck")
    told = get(scripted(operator), "/clusters/sf/stuck-batch").json()
    assert told["stuck"]["skip_requested"]
    assert [row["batch"] for row in told["skipped"]] == [BATCH]


def test_the_health_of_the_cluster_names_the_batch_and_its_cause(
    stuck: Cluster, admin: Actor, operator: Actor
) -> None:
    """Also where the agent knew of no batch before it; the way to skip it is a part of it."""
    assert get(scripted(operator), "/clusters/other/health").status_code == 404
    told = get(scripted(operator), "/clusters/sf/health").json()["stuck_batch"]
    assert (told["batch"], told["failures"], told["records"]) == (BATCH, 3, 45)
    assert (told["cause"], told["skip_requested"]) == ("", False)
    for batch, detail in ((None, "unknown number"), (BATCH - 1, "another"), (BATCH, "a segfault")):
        DriverRestart.objects.create(
            cluster=stuck, at=timezone.now(), cause="exit", detail=detail, batch=batch
        )
    told = get(scripted(operator), "/clusters/sf/health").json()["stuck_batch"]
    assert told["cause"] == "a segfault"
    page = browser(admin).get("/clusters/sf/").content.decode()
    health = page[page.index('id="health"') :].partition("</section>")[0]
    assert f"Batch {BATCH} cannot be processed" in health
    assert "It has failed 3 times in a row: a segfault" in health
    assert "Skip the batch" in health


def test_through_the_pages(stuck: Cluster, admin: Actor, operator: Actor) -> None:
    """The button is there for admins alone, and only while a batch is stuck."""
    page = browser(operator).get("/clusters/sf/").content.decode()
    assert "It has failed 3 times in a row" in page
    assert "Skip the batch" not in page
    assert browser(operator).get("/clusters/sf/stuck-batch/").status_code == 403
    mine = browser(admin)
    assert "Skip the batch" in mine.get("/clusters/sf/").content.decode()
    page = mine.get("/clusters/sf/stuck-batch/").content.decode()
    assert "45 records between the positions" in page
    mine.post("/clusters/sf/stuck-batch/skip/", {"batch": BATCH, "reason": "a bad sensor"})
    assert SkippedBatch.objects.get().by == admin.name
    Cluster.objects.update(slug="other")
    assert "stuck-batch" not in mine.get("/clusters/other/").content.decode()


def browser(by: Actor) -> Client:
    client = Client()
    client.force_login(user_of(by))
    return client
