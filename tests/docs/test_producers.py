"""The examples of docs/producers.md run as they are written."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from pytest_django.live_server_helper import LiveServer

from controlplane.access import tokens
from controlplane.access.roles import PRODUCER
from controlplane.models import Cluster
from controlplane.wire import keys
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.values import START
from controlplane.wire.records.record_codec import decode_block
from controlplane.wire.schema import StreamSchema
from tests.support.cluster import actor, small_cluster, stream_id

if TYPE_CHECKING:
    from redis import Redis

TEXT: Final = (Path(__file__).parents[2] / "docs/producers.md").read_text()


def section(title: str) -> str:
    """Return the text under a heading."""
    return TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]


def declared_schema() -> StreamSchema:
    """Return the schema of the stream that the page declares."""
    body = re.search(r"-d '(.*?)'", section("Declare streams"), re.DOTALL)
    assert body is not None
    return StreamSchema.from_json(json.loads(body[1])["streams"][0]["schema"])


def test_the_example_of_a_producer_appends_its_record(
    redis_client: "Redis", redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text is a decimal with its digits, as over HTTP."""
    monkeypatch.setenv("REDIS_URL", redis_server)
    redis_client.hset(keys.schemas_key("sf"), "7", declared_schema().to_text())
    code = re.search(r"```python\n(.*?)```", section("Append records"), re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {"stream_id": 7}
    exec(code[1], names)
    ((entry,),) = RedisLog(redis_client, "sf").read_streams([7], START, "+").values()
    assert entry.position == names["position"]
    (record,) = decode_block(entry.block).records.to_pylist()
    assert record["amount"] == Decimal("31.50")
    assert int(record.pop("placed_at").timestamp() * 1000) == names["rows"][0]["placed_at"]
    assert (record["shop"], record["customer"], record["items"]) == ("Kiel", 7, 3)


@pytest.mark.django_db(transaction=True)
def test_the_example_over_http_appends_once(
    live_server: LiveServer, redis_url: str, redis_client: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a producer, repeated with its sequence."""
    person = actor("operator")
    cluster: Cluster = small_cluster(person)
    monkeypatch.setenv("WEIR_URL", live_server.url)
    monkeypatch.setenv("WEIR_TOKEN", tokens.make(person, "loader", PRODUCER, cluster)[1])
    code = re.search(r"```python\n(.*?)```", section("Append over HTTP"), re.DOTALL)
    assert code is not None
    names: dict[str, Any] = {}
    exec(code[1], names)
    rows = [{"ts": 1_211_587_200_000, "car": car, "x": 1, "y": 2, "speed": None} for car in (1, 2)]
    first, again = (names["append"]("s1", pa.Table.from_pylist(rows), "l", 1) for _ in range(2))
    assert first["position"] == again["position"]
    stream = stream_id(cluster, "s1")
    ((entry,),) = RedisLog(redis_client, "sf").read_streams([stream], START, "+").values()
    assert decode_block(entry.block).records.column("car").to_pylist() == [1, 2]
