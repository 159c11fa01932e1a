"""Any bytes in Redis: each loop that reads them goes on with the next entry, and counts."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

import pytest
import redis
from django.db import DataError
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from controlplane.background import ingestion
from controlplane.connections import redis_client
from controlplane.events.task_names import QUEUES, queue_key
from controlplane.health.liveness.readings import driver_beats, read_site
from controlplane.models import Cluster, SeriesPeriod
from controlplane.processes.runtime import beats
from controlplane.results import finality
from controlplane.wire import attempts, dead_letters, key_samples, keys, measures, node_faults
from controlplane.wire.foreign.entries import SITE, EntryLocation, skipped_entries
from controlplane.wire.foreign.telemetry import newest_rows
from tests.support.cluster import actor, small_cluster, telemetry
from tests.support.series import all_samples
from workers.agent.heartbeats import Observer
from workers.pipeline.reports.telemetry_row import read_load_feedback
from workers.pipeline.split_nodes.grouping_states import StateReports, read_reports
from workers.relay.relay import Relay

pytestmark = pytest.mark.django_db(transaction=True)
BEGIN_MS: Final = 1_700_000_000_000
# JSON that readers could stumble over: types, ranges, depth, names, bombs.
ODD_JSON: Final = [
    b"", b"null", b"[]", b"{}", b"1e400", b"NaN", b"9" * 5000, b"[" * 100_000, b'"\\ud800"',
    b'{"batch": 1}', json.dumps(telemetry(1, 10**18)).encode(),
    json.dumps(telemetry(1, BEGIN_MS, nodes=[{"node": 10**9}])).encode(),
    json.dumps(telemetry(1, BEGIN_MS, waiting="many")).encode(),
    json.dumps(telemetry(10**30, BEGIN_MS)).encode(),
    json.dumps(telemetry(1, BEGIN_MS, streams={"other": 1})).encode(),
    json.dumps(telemetry(1, BEGIN_MS, latency={"p95": 1e308 * 10})).encode(),
    json.dumps(telemetry(1, BEGIN_MS, behind={"1": [1]})).encode(),
]  # fmt: skip
ANY: Final = st.one_of(st.binary(max_size=40), st.sampled_from(ODD_JSON))
LAW: Final = settings(
    max_examples=25, deadline=None, phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip


@pytest.fixture
def sf(redis_url: str, transactional_db: None) -> Cluster:
    """A small cluster that has been routed once."""
    return small_cluster(actor())


def publish(slug: str, batch: int, **changed: Any) -> None:
    row = telemetry(batch, BEGIN_MS + 1000 * batch, **changed)
    redis_client().xadd(keys.telemetry_key(slug), {"t": json.dumps(row)})


def relayed(redis_url: str) -> set[int]:
    """Let a new relay read all there is; return the newest sample's time of each cluster."""

    async def run() -> None:
        relay = Relay(redis_url)
        for _ in range(3):
            await relay.step(block_ms=10)
        await relay._client.aclose()

    asyncio.run(run())
    rows = SeriesPeriod.objects.filter(seconds=1)
    return {row.cluster_id for row in rows}


@given(entries=st.lists(ANY, min_size=1, max_size=8), field=st.sampled_from(["t", "p", "?"]))
@LAW
def test_the_relay_reads_the_row_after_any_entries(
    sf: Cluster, redis_url: str, entries: list[bytes], field: str
) -> None:
    """Of this cluster and of the others."""
    client = redis_client()
    client.flushdb()
    SeriesPeriod.objects.all().delete()
    Cluster.objects.update(telemetry_position="0-0", progress_position="0-0")
    other, _ = Cluster.objects.get_or_create(slug="other", defaults={"name": "Other"})
    for entry in entries:
        client.xadd(keys.telemetry_key("sf"), {field: entry})
        client.xadd(keys.progress_key("sf"), {field: entry})
    for slug in ("sf", "other"):
        publish(slug, 1)
    assert relayed(redis_url) == {sf.pk, other.pk}
    (counted,) = [
        row for row in skipped_entries(client, "sf") if row.place == EntryLocation.TELEMETRY
    ]
    assert counted.count == len(entries)
    assert skipped_entries(client, "other") == []


def test_keys_of_another_type_stop_no_other_cluster(sf: Cluster, redis_url: str) -> None:
    other = Cluster.objects.create(slug="other", name="Other")
    client = redis_client()
    client.set(keys.telemetry_key("sf"), "x")
    client.set(keys.progress_key("other"), "x")
    client.set(beats.BEATS, "x")
    publish("other", 1)
    assert relayed(redis_url) == {other.pk}
    assert {row.place for row in skipped_entries(client, "sf")} == {EntryLocation.TELEMETRY}
    client.delete(keys.telemetry_key("sf"))
    publish("sf", 1)
    assert relayed(redis_url) == {sf.pk, other.pk}


def test_a_row_that_the_database_refuses_is_skipped(
    sf: Cluster, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those before and after it are stored, each once."""
    for batch in (1, 2, 3):
        publish("sf", batch)
    whole = ingestion.store

    def store(cluster: Any, rows: Any, *rest: Any) -> None:
        if any(row["batch"] == 2 for row in rows):
            raise DataError("integer out of range")
        whole(cluster, rows, *rest)

    monkeypatch.setattr(ingestion, "store", store)
    relayed(redis_url)
    times = [sample["t"] - BEGIN_MS for sample in all_samples(sf)]
    assert times == [1000, 3000]
    (counted,) = skipped_entries(redis_client(), "sf")
    assert (counted.count, "integer out of range" in counted.reason) == (1, True)


def test_an_entry_of_a_hundred_megabytes_is_skipped(sf: Cluster, redis_url: str) -> None:
    redis_client().xadd(keys.telemetry_key("sf"), {"t": b"[" + b"0," * 50_000_000 + b"0]"})
    publish("sf", 1)
    assert relayed(redis_url) == {sf.pk}
    (counted,) = skipped_entries(redis_client(), "sf")
    assert "100,000,003 bytes" in counted.reason


def test_a_version_that_was_never_decided_is_not_applied(sf: Cluster, redis_url: str) -> None:
    publish("sf", 1, version=10**9)
    assert relayed(redis_url) == {sf.pk}
    sf.refresh_from_db()
    assert sf.applied_version <= sf.routing_version


Write = Callable[["redis.Redis", str, bytes], object]


def states(client: "redis.Redis", slug: str, value: bytes) -> None:
    """Write a value wherever processes read a state."""
    for key, fields in (
        (keys.driver_key(slug), ("pid", "beat_ms", "jvm_ms", "state")),
        (keys.activity_key(slug), ("steps", "sink")),
        (keys.attempts_key(slug), ("batch", "count", "driver", "records")),
        (keys.faults_key(slug), ("0", "x")),
        (keys.dead_counts_key(slug), ("1:schema", "?:?")),
        (keys.dead_data_key(slug), ("1-0:1:0",)),
        (keys.generation_key(slug), ()),
        (keys.skipped_key(slug), (EntryLocation.LOG,)),
        (beats.BEATS, ("web", "agent/x")),
        (beats.AGENT_CLUSTERS, (slug,)),
    ):
        for field in fields:
            client.hset(key, field, value)
    client.zadd(keys.dead_order_key(slug), {"1-0:1:0": 1})
    client.set(keys.groupings_key(slug), value)
    client.set(keys.route_latest_key(slug), value)
    client.set(beats.CHILDREN, value)
    for key in (keys.measures_key(slug, 0), keys.key_samples_key(slug, 1)):
        client.xadd(key, {"m": value, "s": value})
    client.xadd(keys.telemetry_key(slug), {"t": value})
    for name in QUEUES:
        client.rpush(queue_key(name), value)


def of_another_type(client: "redis.Redis", slug: str, value: bytes) -> None:
    """Write texts where hashes and streams are, and a list where a text is."""
    for key in (
        keys.driver_key(slug), keys.activity_key(slug), keys.faults_key(slug), beats.BEATS,
        keys.measures_key(slug, 0), keys.key_samples_key(slug, 1), keys.telemetry_key(slug),
        keys.attempts_key(slug), *map(queue_key, QUEUES),
    ):  # fmt: skip
        client.set(key, value)
    client.rpush(keys.route_latest_key(slug), value)
    client.rpush(beats.CHILDREN, value)


@pytest.mark.parametrize("write", [states, of_another_type])
@given(value=ANY)
@LAW
def test_readers_of_states_go_on(sf: Cluster, redis_url: str, write: Write, value: bytes) -> None:
    """Agent, driver, web and planners: what can be read is there, and the site is up."""
    client = redis_client()
    client.flushdb()
    write(client, "sf", value)
    assert read_site(fresh=True).lost_ms is None
    beats.last_beats(client)
    beats.cluster_states(client)
    assert driver_beats(["sf", "other"]).keys() <= {"sf"}
    observer = Observer(client, redis_url)
    observed = observer.look("sf")
    observer.close()
    assert observed.batch in (-1, 1)
    assert newest_rows(client, "sf", 3) in ([], newest_rows(client, "sf", 1))
    assert read_load_feedback(client, "sf").waiting == 0
    assert attempts.begin(client, "sf", attempts.BatchAttempt(1, 0, "0-0", "1-0", 1, 1), "d") >= 1
    measures.read_tasks(client, "sf", [0])
    key_samples.read_newest(client, "sf", [1], 3)
    node_faults.active(client, "sf", 0)
    if write is states:
        assert isinstance(read_reports(client, "sf"), StateReports)
        dead_letters.newest(client, "sf")
        dead_letters.read_counts(client, "sf")
        skipped_entries(client, "sf")


@given(value=ANY)
@LAW
def test_finality_goes_on_with_the_next_cluster(sf: Cluster, redis_url: str, value: bytes) -> None:
    """Watermarks that are not numbers belong to one cluster."""
    client = redis_client()
    client.flushdb()
    other, _ = Cluster.objects.get_or_create(slug="other", defaults={"name": "Other"})
    finality._timings.clear()
    client.hset(keys.watermarks_key("sf"), mapping={"batch": value, "settled:1": value})
    finality.update_finality(timezone.now())
    assert other.pk in finality._timings


def test_what_is_skipped_at_the_site_is_counted(sf: Cluster) -> None:
    redis_client().hset(beats.BEATS, "web", "soon")
    for _ in range(3):
        read_site(fresh=True)
    (counted,) = skipped_entries(redis_client(), SITE)
    assert (counted.place, counted.count) == (EntryLocation.BEATS, 1), (
        "a state counts once per reason"
    )
