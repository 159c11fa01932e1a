"""What benchmarks write into the database and into Redis is as the present schema has it."""

import json
from typing import Any

import numpy as np
import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client

from benchmarks import (
    api_filling,
    api_speed,
    application,
    cab_log,
    data_plane,
    execution_speed,
    placing_speed,
)
from benchmarks.results import store_speed
from controlplane.access import tokens
from controlplane.catalog.computations import computation_of_query
from controlplane.models import Cluster, Query, Task
from controlplane.planning.snapshots import take_snapshot
from controlplane.wire import log
from controlplane.wire.producer import Producer
from tests.support.windows import DjangoDatabase
from workers.demo.recording import REPORT

pytestmark = pytest.mark.django_db


def client_of(user: User) -> Client:
    return Client(headers={"authorization": f"Bearer {tokens.create(user, 'bench')}"})


def require_computable(cluster: Cluster) -> None:
    for query in cluster.queries.all():
        assert computation_of_query(query).window.size_ms


def test_the_lists_of_the_api_have_rows(redis_url: str) -> None:
    user, cluster = api_filling.fill(queries=20, streams=8, proposals=3)
    require_computable(cluster)
    client = client_of(user)
    for name, path in api_speed.LISTS.items():
        answer = client.get(f"{path}&limit=5")
        assert answer.status_code == 200, (name, answer.content)
    assert len(client.get(f"{api_speed.CLUSTER}/queries").json()["queries"]) == 20
    assert len(client.get(f"{api_speed.CLUSTER}/proposals").json()["proposals"]) == 3


@pytest.mark.parametrize("form", ["_plain", "_texted"])
def test_the_api_takes_the_bulk(redis_url: str, form: str) -> None:
    user, cluster = api_filling.fill(queries=10, streams=8, proposals=1)
    body = getattr(api_speed, form)
    rows = [body(f"new-{number}", number, cluster.streams.count() // 2) for number in range(5)]
    answer = client_of(user).post(
        f"{api_speed.CLUSTER}/queries/bulk",
        json.dumps({"queries": rows}),
        content_type="application/json",
    )
    assert answer.status_code == 201, answer.content
    require_computable(cluster)


def test_a_snapshot_has_all_queries_with_their_state(redis_url: str) -> None:
    cluster = execution_speed.fill(12, streams=6, nodes=3)
    require_computable(cluster)
    snapshot = take_snapshot(cluster.pk, 0.05)
    assert len(snapshot.state) == 12
    assert all(size > 0 for size in snapshot.state.values())


def test_the_queries_of_the_placement_run(redis_url: str) -> None:
    actor, cluster = placing_speed.create_cluster(10)
    placing_speed.fill(actor, cluster, 6)
    require_computable(cluster)
    assert Task.objects.filter(query__cluster=cluster).count() == 6
    assert set(Query.objects.values_list("state", flat=True)) == {"running"}


def test_the_api_returns_the_windows_of_the_result_store(redis_url: str) -> None:
    query = store_speed.made_query()
    require_computable(query.cluster)
    store_speed.fill(DjangoDatabase(), 2)
    client = client_of(User.objects.create_superuser("bench"))
    found: Any = client.get(store_speed.RESULTS).json()
    assert len(found["windows"]) == store_speed.KEYS


def test_the_log_has_the_drawn_records(redis_url: str) -> None:
    data_plane.publish_table(redis_url, application.small_queries(5, 2))
    with Producer(redis_url, data_plane.CLUSTER) as producer:
        application.append(producer, np.random.default_rng(1), 500, application.EVENT_START_MS)
    assert waiting(redis_url, data_plane.CLUSTER) == 500


def test_the_log_has_the_recorded_reports(redis_url: str) -> None:
    records = cab_log.cab_records(2_000)
    cab_log.fill(redis_url, "cabs", records)
    assert list(records.columns) == [*REPORT.arrow.names, "stream"]
    assert waiting(redis_url, "cabs") == 2_000
    with redis.Redis.from_url(redis_url) as client:
        cab_log.copy_log(client, "cabs", "copy")
    assert waiting(redis_url, "copy") == 2_000


def waiting(url: str, cluster: str) -> int:
    return log.open_log(url, cluster).waiting().records
