"""What the tests of the control plane, the workers and the pages share: real parts, kept small."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from pytest_django import Settings

from tests.support.redis_server import running_redis

if TYPE_CHECKING:
    from celery import Celery
    from redis import Redis


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Put the test database into a file, as worker threads have connections of their own."""
    from django.db import connections  # noqa: PLC0415 - settings are not read before a test asks

    config = connections["default"].settings_dict
    if config["ENGINE"] == "django.db.backends.sqlite3":
        config["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "test.sqlite3")


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Redis that only this test session uses."""
    with running_redis(tmp_path_factory.mktemp("redis-session")) as url:
        yield url


@pytest.fixture
def redis_client(redis_server: str) -> Iterator["Redis"]:
    """A connection to the session's Redis, emptied."""
    import redis  # noqa: PLC0415

    with redis.Redis.from_url(redis_server) as connection:
        connection.flushdb()
        yield connection


@pytest.fixture
def redis_url(redis_server: str, settings: Settings) -> Iterator[str]:
    """An empty Redis, which settings, channel layer and Celery speak to during the test."""
    import redis  # noqa: PLC0415
    from channels.layers import channel_layers  # noqa: PLC0415

    from workers.celery import app  # noqa: PLC0415

    with redis.Redis.from_url(redis_server) as client:
        client.flushdb()
    settings.REDIS_URL = redis_server
    layers = {"default": {**settings.CHANNEL_LAYERS["default"]}}
    layers["default"]["CONFIG"] = {**layers["default"]["CONFIG"], "hosts": [redis_server]}
    settings.CHANNEL_LAYERS = layers
    channel_layers.backends.clear()
    before = app.conf["broker_url"]
    _speak_to(app, redis_server)
    yield redis_server
    _speak_to(app, before)
    channel_layers.backends.clear()


@pytest.fixture
def celery_worker(redis_url: str, transactional_db: None) -> Iterator[None]:
    """A real Celery worker on the real broker, in a thread of this process."""
    from celery.contrib.testing.worker import start_worker  # noqa: PLC0415

    from workers.celery import app  # noqa: PLC0415

    queues = ["weir", "lab"]
    with start_worker(
        app, pool="solo", perform_ping_check=False, shutdown_timeout=20, queues=queues
    ):
        yield


def _speak_to(app: "Celery[Any]", url: str) -> None:
    """Point the Celery application at a broker and close its connections to the one before."""
    from kombu import pools  # noqa: PLC0415

    app.conf.update(broker_url=url, broker_read_url=url, broker_write_url=url)
    pools.reset()
    # Both hang on the old connection, and Celery has no door to make them anew.
    vars(app.amqp)["_producer_pool"] = None
    vars(app)["_pool"] = None
