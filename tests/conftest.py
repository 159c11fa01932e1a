"""What the tests of the control plane, the workers and the pages share: real parts, kept small."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.support.redis_server import running_redis


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
    before = app.conf.broker_url
    app.conf.broker_url = app.conf.broker_read_url = app.conf.broker_write_url = redis_server
    _forget_pools(app)
    yield redis_server
    app.conf.broker_url = app.conf.broker_read_url = app.conf.broker_write_url = before
    _forget_pools(app)
    channel_layers.backends.clear()


@pytest.fixture
def celery_worker(redis_url: str, transactional_db: None) -> Iterator[None]:
    """A real Celery worker on the real broker, in a thread of this process."""
    from celery.contrib.testing.worker import start_worker  # noqa: PLC0415

    from workers.celery import app  # noqa: PLC0415

    with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=20):
        yield


def _forget_pools(app: object) -> None:
    """Close the connections to the broker that was set before."""
    from celery import Celery  # noqa: PLC0415
    from kombu import pools  # noqa: PLC0415

    assert isinstance(app, Celery)
    pools.reset()
    # The producer pool of the app hangs on the old connection.
    app.amqp._producer_pool = None
    app._pool = None
