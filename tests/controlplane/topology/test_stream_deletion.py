"""Deletion of a stream that nothing reads: rows, routing, Redis, and a new stream of its name."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from redis import Redis

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.catalog.computations import schema_of
from controlplane.connections import redis_client
from controlplane.errors import Conflict, NotFound
from controlplane.models import AuditEntry, Cluster, Exclusion, Query, QueryStream, Stream
from controlplane.plans.plan import OtherAction
from controlplane.topology import applicability, drop_rules, queries, streams
from controlplane.topology.apply import ActionRejected, TopologyChange, apply
from controlplane.topology.bulk_actions import restore_named
from controlplane.topology.drop_rules import DropSpec
from controlplane.topology.placement import place_pending
from controlplane.topology.publishing import publish_unpublished, republish
from controlplane.topology.rows import current_table
from controlplane.wire import dead_letters, keys
from controlplane.wire.dead_letters import Reason
from controlplane.wire.log import open_log
from controlplane.wire.routing.cluster_actions import AssignStream, RemoveStream, SetSchema
from controlplane.wire.routing.publication import latest_version, read_table
from tests.controlplane.api.callers import scripted, user_of
from tests.support.cluster import placed, replayed_table, submit

pytestmark = pytest.mark.django_db(transaction=True)
RECORD = {"ts": 1_211_587_200_000, "car": 17, "x": 52300, "y": 65100, "speed": 830}


@pytest.fixture
def stream(sf: Cluster) -> Stream:
    return sf.streams.get(name="s1")


@pytest.fixture
def api(operator: Actor, sf: Cluster) -> Client:
    return scripted(operator)


def append(api: Client, name: str, query: str = "", record: dict[str, Any] = RECORD) -> Any:
    url = f"/api/v1/clusters/sf/streams/{name}/records{query}"
    return api.post(url, json.dumps({"records": [record]}), "application/json")


def values_of(redis: Redis, stream: Stream) -> list[Any]:
    """Return what Redis has under the id of a stream."""
    hashes = (keys.newest_key, keys.counts_key, keys.schemas_key, keys.watermarks_key)
    return [redis.exists(keys.log_key("sf", stream.pk)),
            *(redis.hget(key("sf"), str(stream.pk)) for key in hashes),
            redis.hget(keys.dead_counts_key("sf"), f"{stream.pk}:{Reason.BODY}")]  # fmt: skip


def test_rows_records_and_dead_letters_go_and_the_name_is_free(
    operator: Actor, sf: Cluster, stream: Stream, api: Client, redis_url: str
) -> None:
    redis, other = redis_client(), sf.streams.get(name="s2")
    publish_unpublished(sf.pk)
    for name in ("s1", "s2"):
        assert append(api, name).status_code == 201
        assert append(api, name, "?on_bad=dead_letter", {"x": "odd"}).json()["dead_letters"] == 1
    assert None not in values_of(redis, stream)[:4]
    Exclusion.objects.create(
        cluster=sf, kind="stream", subject="s1", reason="r", owner="o",
        created_at=timezone.now(), expires_at=timezone.now() + timedelta(days=1),
    )  # fmt: skip
    drop_rules.set_drop(operator, stream, DropSpec(0.5))
    before = values_of(redis, other)
    streams.delete(operator, stream, "s1", "no longer sent")
    assert not Stream.objects.filter(pk=stream.pk).exists()
    assert not Exclusion.objects.exists()
    entry = AuditEntry.objects.get(action="stream.delete")
    assert (entry.object, entry.reason) == ("s1", "no longer sent")
    assert values_of(redis, stream) == [0, None, None, None, None, None]
    assert values_of(redis, other) == before
    assert {letter.stream for letter in dead_letters.every(redis, "sf")} == {other.pk}
    assert append(api, "s1").status_code == 404
    assert append(api, str(stream.pk)).status_code == 404
    # Its records are no longer evidence of anything under its name.
    row = {"name": "s1", "schema": stream.schema}
    url = "/api/v1/clusters/sf/streams"
    made = api.post(url, json.dumps({"streams": [row]}), "application/json").json()[0]
    assert made["id"] != stream.pk
    assert made["queries"] == 0
    new = Stream.objects.get(pk=made["id"])
    log = open_log("", "sf", redis_url)
    assert log.newest_entries([new.pk], 5) == {}
    log.close()
    assert append(api, "s1").status_code == 201


def test_the_published_table_is_that_of_the_rows(
    operator: Actor, sf: Cluster, stream: Stream
) -> None:
    placed(operator, sf, {"q": ["s0", "s2"]})
    drop_rules.set_drop(operator, stream, DropSpec(0.5))
    stream.refresh_from_db()
    streams.delete(operator, stream, "s1")
    table = current_table(sf.pk)
    assert stream.pk not in table.splits
    assert stream.pk not in table.schemas
    assert not table.drop_rules
    assert replayed_table(sf) == table
    redis = redis_client()
    latest = latest_version(redis, "sf")
    assert latest is not None
    assert read_table(redis, "sf", latest) == table


def test_a_redis_that_was_away_forgets_it_later(
    operator: Actor, sf: Cluster, stream: Stream
) -> None:
    """A snapshot of the whole table replaces the schemas that producers read."""
    publish_unpublished(sf.pk)
    redis = redis_client()
    assert redis.hexists(keys.schemas_key("sf"), str(stream.pk))
    kept: Any = redis.hgetall(keys.schemas_key("sf"))
    streams.delete(operator, stream, "s1")
    redis.hset(keys.schemas_key("sf"), mapping=kept)
    republish(Cluster.objects.get(pk=sf.pk))
    assert not redis.hexists(keys.schemas_key("sf"), str(stream.pk))
    assert redis.hlen(keys.schemas_key("sf")) == len(kept) - 1


def test_live_readers_are_named_and_ended_ones_keep_their_results(
    operator: Actor, sf: Cluster, stream: Stream
) -> None:
    placed(operator, sf, {f"q{number:02}": ["s1"] for number in range(12)})
    with pytest.raises(Conflict, match=r"s1 is read by q00, .*, q09 and 2 more: end") as refused:
        streams.delete(operator, stream, "s1")
    assert refused.value.code == "has_readers"
    assert refused.value.data["query_count"] == 12
    assert Stream.objects.filter(pk=stream.pk).exists()
    sf.refresh_from_db()
    Query.objects.filter(cluster=sf).exclude(name="q00").update(state="ended")
    with pytest.raises(Conflict, match="s1 is read by q00: end"):
        streams.delete(operator, stream, "s1")
    queries.end(operator, sf, ["q00"])
    with pytest.raises(Conflict, match="read by q00"):
        streams.delete(operator, stream, "s1")


def test_an_ended_reader_is_not_restored(operator: Actor, sf: Cluster, stream: Stream) -> None:
    """Neither without the stream, nor over another stream that has its name now."""
    submit(operator, sf, {"one": ["s1"], "two": ["s1", "s2"], "other": ["s2"]})
    Query.objects.filter(cluster=sf).update(state="ended", ended_at=timezone.now())
    streams.delete(operator, stream, "s1")
    streams.register(operator, sf, [streams.StreamSpec("s1", schema=stream.schema)])
    done = restore_named(operator, sf, ["one", "two", "other"])
    assert (done.done, done.failed) == (1, 2)
    assert [query.name for query in Query.objects.filter(state="pending")] == ["other"]


def test_a_query_that_was_submitted_meanwhile_is_not_lost(
    operator: Actor, sf: Cluster, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are looked at again in the transaction of the deletion."""
    (query,) = placed(operator, sf, {"q": ["s1"]})
    sf.refresh_from_db()
    with pytest.raises(Exception, match="Routing moved"):
        apply(sf, [RemoveStream(stream.pk)], TopologyChange("deleted"))
    assert QueryStream.objects.filter(query=query).exists()


def test_it_takes_the_name(operator: Actor, stream: Stream) -> None:
    with pytest.raises(Conflict, match="must repeat its name"):
        streams.delete(operator, stream, "S1")
    streams.delete(operator, stream, "s1")
    with pytest.raises(NotFound):
        streams.delete(operator, stream, "s1")


def test_plans_do_not_bring_it_back(operator: Actor, sf: Cluster, stream: Stream) -> None:
    streams.delete(operator, stream, "s1")
    sf.refresh_from_db()
    schema = schema_of(stream.schema)
    assert schema is not None
    for action in (AssignStream(stream.pk, 1), SetSchema(stream.pk, schema)):
        with pytest.raises(ActionRejected, match="There is no stream"):
            apply(sf, [action], TopologyChange("again"))
    (planned,) = [OtherAction(AssignStream(stream.pk, 1), ())]
    assert applicability.obstacles(sf, [planned]) == [applicability.Obstacle.ENDED]


def test_by_api_by_command_and_on_its_page(
    operator: Actor, sf: Cluster, api: Client, client: Client
) -> None:
    url = "/api/v1/clusters/sf/streams/s0"
    assert api.delete(url).status_code == 422
    refused = api.delete(f"{url}?confirm=s1")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_confirmed")
    assert api.delete(f"{url}?confirm=s0&reason=r").status_code == 204
    assert api.get(url).status_code == 404
    client.force_login(user_of(operator))
    stream = sf.streams.get(name="s1")
    page = f"/clusters/sf/streams/{stream.pk}/"
    assert "Delete stream" in client.get(page).content.decode()
    refused = client.post(f"{page}delete/", {"confirm": "s2"}, follow=True)
    assert "must repeat its name" in refused.content.decode()
    assert sf.streams.filter(name="s1").exists()
    assert client.post(f"{page}delete/", {"confirm": "s1"})["Location"] == "/clusters/sf/streams/"
    assert client.get(page).status_code == 404
    assert set(sf.streams.values_list("name", flat=True)) == {"s2", "s3", "s4", "s5"}


def test_pages_of_an_ended_query_stay(
    operator: Actor, sf: Cluster, stream: Stream, client: Client
) -> None:
    (query,) = placed(operator, sf, {"q": ["s1"]})
    Query.objects.filter(pk=query.pk).update(state="running")
    queries.end(operator, sf, ["q"])
    place_pending(sf.pk)
    query.refresh_from_db()
    assert query.state == "ended"
    streams.delete(operator, stream, "s1")
    client.force_login(user_of(operator))
    assert client.get(f"/clusters/sf/queries/{query.pk}/").status_code == 200
    assert client.get("/clusters/sf/queries/?filter=state:ended").status_code == 200
    token = tokens.create(user_of(operator), "test")
    api = Client(headers={"authorization": f"Bearer {token}"})
    found = api.get("/api/v1/clusters/sf/queries/q").json()
    assert (found["state"], found["streams"]) == ("ended", [])
