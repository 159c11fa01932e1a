from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client

from controlplane.access import tokens
from controlplane.models import Cluster
from tests.support.redis_server import running_redis
from workers.demo.keeper import WeirApi
from workers.demo.recording import REPORT, Recording, load_recording


@pytest.fixture(scope="session")
def recording() -> Recording:
    """The day that the demonstration replays."""
    return load_recording()


@pytest.fixture(scope="session")
def demo_redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A private Redis server."""
    with running_redis(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def client(demo_redis_url: str) -> Iterator["redis.Redis"]:
    """An empty database on it."""
    with redis.Redis.from_url(demo_redis_url) as connection:
        connection.flushall()
        yield connection


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """Where the token will be written."""
    return tmp_path / "token"


class InProcess(httpx.BaseTransport):
    """Hands requests to Django within the test's own transaction."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = Client().generic(
            request.method,
            request.url.raw_path.decode(),
            request.read(),
            content_type="application/json",
            headers={"authorization": request.headers["authorization"]},
        )
        return httpx.Response(answer.status_code, content=answer.content)


@pytest.fixture
def cluster(db: None) -> Cluster:
    """The cluster that is replayed into."""
    return Cluster.objects.create(slug="sf", name="San Francisco", slots=4, splits=2)


@pytest.fixture
def api(cluster: Cluster) -> Iterator[WeirApi]:
    """The client of the real API, with two streams."""
    user = User.objects.create_superuser("replay")
    headers = {"Authorization": f"Bearer {tokens.create(user, 'replay')}"}
    with httpx.Client(
        transport=InProcess(), base_url="http://localhost", headers=headers
    ) as http_client:
        api = WeirApi(http_client, cluster.slug)
        schema = REPORT.to_json()
        api.register([{"name": name, "schema": schema} for name in ("tile-1-1", "tile-1-2")])
        yield api
