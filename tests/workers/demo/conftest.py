from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support.redis_server import running_redis
from workers.demo.recording import Recording, load_recording


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
