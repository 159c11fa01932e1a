"""What the tests of the control plane, the workers and the pages share: real parts, kept small."""

import gc
import logging
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pytest_django import DjangoDbBlocker, Settings
from xdist.scheduler import LoadScopeScheduling

from controlplane.processes.runtime import leases
from controlplane.wire.network.destinations import LIST
from tests.support import waits
from tests.support.destinations import LOGS
from tests.support.examples import databases_tried, load_profile, try_fewer_examples
from tests.support.nightly import leave_out
from tests.support.postgres import as_default, database_of, running_postgres
from tests.support.redis_server import running_redis
from tests.support.sharing import Sharing, scope_of, starts_weir
from tests.support.whole_results import VARIABLE, clear_results

if TYPE_CHECKING:
    from celery import Celery
    from redis import Redis

    from controlplane.access.roles import Actor
    from tests.support.databases import Templates

ALIASES = ("default", "results")
KEPT_BY_CLUSTER = (
    ("controlplane.telemetry.arrivals.rates", "_CACHE"),
    ("controlplane.planners.shedding.loop", "_KEPT"),
    ("controlplane.planners.partitioning.key_report", "_REPLAYS"),
    ("controlplane.planners.admission.long_outlook", "_computed"),
    ("controlplane.clusters.flow", "routes_of"),
    ("controlplane.planners.shedding.measured", "_kept_parts"),
    ("controlplane.explain.node_work", "_placed"),
    ("controlplane.explain.node_work", "_split"),
    ("controlplane.results.finality", "_timings"),
    ("controlplane.results.sql.schemas", "_seen"),
)
FAST_HASHER = "django.contrib.auth.hashers.MD5PasswordHasher"


def pytest_configure() -> None:
    """Leave the memory of this process unlimited: tests call in it what limits Spark's workers.

    Servers of tests listen at any port of this machine.
    """
    os.environ.setdefault("WEIR_WORKER_MEMORY_MB", str(1 << 20))
    os.environ["WEIR_DESTINATIONS"] = os.environ[LIST] = LOGS
    load_profile()
    _keep_bytecode()
    # Nothing that is imported becomes garbage: looking for it takes a fifth of the collection.
    gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Collect the static files once, before the processes of a run start: pages name them."""
    if not hasattr(session.config, "workerinput"):
        from controlplane.installation.assets.collection import collect_static  # noqa: PLC0415 - needs settings

        collect_static()


def _keep_bytecode() -> None:
    """Write compiled modules to `__pycache__`, also where the environment forbids it.

    Otherwise every process of a run compiles all of Weir, and each worker rewrites all tests.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what is marked `both_databases` on each of them.

    Test methods of unittest's classes take no parameters: a hypothesis state machine is run by
    `run_state_machine_as_test` in a function.
    """
    if mark := metafunc.definition.get_closest_marker("both_databases"):
        databases = databases_tried(**mark.kwargs)
        metafunc.parametrize("database", databases, indirect=True, scope="session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Start the longest files first: a file that one process must run alone bounds the run."""
    leave_out(config, items)
    items.sort(key=_rank)
    for item in items:
        _let_it_use_results(item)
        try_fewer_examples(item)


def _rank(item: pytest.Item) -> int:
    """Return 0 for tests of a whole Weir, 1 for tests of Spark, 2 for other long ones, else 3.

    So that all processes end with short tests, and nearly at once.
    """
    path = item.nodeid.partition("::")[0]
    if starts_weir(path):
        return 0
    if item.get_closest_marker("spark") is not None:
        return 1
    # What tries less by day is long, too; a scope that is no test has several.
    is_reduced = item.get_closest_marker("nightly") is not None
    return 2 if is_reduced or scope_of(item.nodeid) != item.nodeid else 3


def pytest_collection_finish() -> None:
    """Look for garbage less often, and never in what is loaded by now: a tenth of page tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Share out tests one by one, but for files whose tests share what they start."""
    return Sharing(config, log)


def _let_it_use_results(item: pytest.Item) -> None:
    """Whoever may use the database may use both of Weir's: the rows and the results."""
    mark = item.get_closest_marker("django_db")
    fixtures = getattr(item, "fixturenames", ())
    if mark is None and not {"db", "transactional_db"}.intersection(fixtures):
        return
    given = dict(mark.kwargs) if mark is not None else {}
    item.add_marker(pytest.mark.django_db(**{"databases": ALIASES, **given}), append=False)


@pytest.fixture(scope="session", autouse=True)
def database(request: pytest.FixtureRequest) -> Iterator[None]:
    """The database of the test: another one than that of the settings where its mark says so.

    Of the session, so that it is there before what a test makes in it, and seldom changed.
    """
    if getattr(request, "param", "sqlite") == "sqlite":
        yield
        return
    with as_default(request.getfixturevalue("postgres_database")):
        yield


@pytest.fixture(autouse=True)
def nothing_waits_in_transactions() -> Iterator[None]:
    """Fail a test in which a transaction waited for something outside the database."""
    if "django.db.transaction" in sys.modules:
        waits.watch()
    waits.waits.clear()
    yield
    assert not waits.waits, "\n".join(waits.waits)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """Give new files the usual permissions: commands that tests run here restrict those."""
    umask = os.umask(0o022)
    yield
    os.umask(umask)


@pytest.fixture(autouse=True)
def nothing_kept_of_clusters() -> None:
    """Let each test compute what processes keep by a cluster's id and time of creation.

    Clusters of prepared rows have those of an earlier test.
    """
    for module, name in KEPT_BY_CLUSTER:
        # Not imported here: most tests need none of them.
        if loaded := sys.modules.get(module):
            kept = getattr(loaded, name)
            forget = getattr(kept, "cache_clear", None) or kept.clear
            forget()


@pytest.fixture(scope="session", autouse=True)
def patient_leases() -> Iterator[None]:
    """Let one slow answer of Redis not mean that a process holds nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leases, "ANSWER_S", 20.0)
        yield


@pytest.fixture(scope="session")
def templates(pytestconfig: pytest.Config) -> "Templates":
    """The migrated databases, from which those of this process are copied."""
    from tests.support.databases import Templates  # noqa: PLC0415 - needs Django's settings

    return Templates(pytestconfig.rootpath / ".pytest_cache" / "databases")


@pytest.fixture(scope="session")
def postgres_server(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, templates: "Templates"
) -> Iterator[str]:
    """The URL of an empty database on the PostgreSQL server of this session."""
    with django_db_blocker.unblock():
        data = templates.postgres()
    with running_postgres(data) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_database(postgres_server: str) -> dict[str, Any]:
    """Django's settings for the database with Weir's tables on the server of this session."""
    return database_of(postgres_server)


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None,
    django_db_blocker: DjangoDbBlocker,
    templates: "Templates",
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Make the databases of this process: files, as threads have connections of their own."""
    from django.db import connections  # noqa: PLC0415
    from django.test import override_settings  # noqa: PLC0415

    from tests.support.databases import delete_rows_faster  # noqa: PLC0415

    # Hashing a password as in production takes half a second, and so does each login.
    hashers = override_settings(PASSWORD_HASHERS=[FAST_HASHER])
    with pytest.MonkeyPatch.context() as patch, hashers:
        with django_db_blocker.unblock():
            for alias in ALIASES:
                templates.copy_sqlite(alias, tmp_path_factory.mktemp(alias) / "test.sqlite3")
        delete_rows_faster(patch)
        yield
    with django_db_blocker.unblock():
        connections.close_all()


@pytest.fixture(scope="session", autouse=True)
def results_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Name the database of results that drivers and the sink of this process write to."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("results")
        patch.setenv(VARIABLE, f"sqlite:///{folder / 'results.sqlite3'}")
        yield


@pytest.fixture
def results_in_django(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the sink in this process write within the transaction of the test."""
    from tests.support.windows import DjangoDatabase  # noqa: PLC0415
    from workers.pipeline import sink  # noqa: PLC0415

    monkeypatch.setattr(sink, "results_of", lambda _: DjangoDatabase())


@pytest.fixture(scope="module")
def class_archive() -> Iterator[None]:
    """Let Spark's JVM start from the archive of its classes, on the Java of JAVA_HOME."""
    from workers.agent.class_archive import java_environment  # noqa: PLC0415

    with pytest.MonkeyPatch.context() as patch:
        if home := os.environ.get("JAVA_HOME"):
            for name, value in java_environment(Path(home)).items():
                patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory, results_url: None) -> Iterator[str]:
    """The URL of a Redis that only this test session uses."""
    with running_redis(tmp_path_factory.mktemp("redis-session")) as url:
        yield url


@pytest.fixture
def redis_client(redis_server: str) -> Iterator["Redis"]:
    """A connection to the session's Redis, emptied."""
    import redis  # noqa: PLC0415

    with redis.Redis.from_url(redis_server) as connection:
        connection.flushdb()
        clear_results()
        yield connection


@pytest.fixture
def redis_url(redis_server: str, settings: Settings) -> Iterator[str]:
    """An empty Redis, which settings, channel layer and Celery speak to during the test."""
    import redis  # noqa: PLC0415
    from channels.layers import channel_layers  # noqa: PLC0415

    from controlplane.wire.redis_clients import channel_host  # noqa: PLC0415
    from workers.celery import app  # noqa: PLC0415

    with redis.Redis.from_url(redis_server) as client:
        client.flushdb()
    clear_results()
    settings.REDIS_URL = redis_server
    layers = {"default": {**settings.CHANNEL_LAYERS["default"]}}
    hosts = [channel_host(redis_server)]
    layers["default"]["CONFIG"] = {**layers["default"]["CONFIG"], "hosts": hosts}
    settings.CHANNEL_LAYERS = layers
    channel_layers.backends.clear()
    before = app.conf["broker_url"]
    _speak_to(app, redis_server)
    yield redis_server
    _speak_to(app, before)
    channel_layers.backends.clear()


@pytest.fixture
def operator(db: None, redis_url: str) -> "Actor":
    """A person who may change things."""
    from tests.support.prepared import prepared_actor  # noqa: PLC0415

    return prepared_actor("operator")


@pytest.fixture
def approver(db: None, redis_url: str) -> "Actor":
    """A person who may approve plans."""
    from tests.support.prepared import prepared_actor  # noqa: PLC0415

    return prepared_actor("approver")


@pytest.fixture
def viewer(db: None, redis_url: str) -> "Actor":
    """A person who may look."""
    from tests.support.prepared import prepared_actor  # noqa: PLC0415

    return prepared_actor("viewer")


@pytest.fixture
def admin(db: None, redis_url: str) -> "Actor":
    """A person who may do everything, and has just confirmed to be present."""
    from tests.support.cluster import actor  # noqa: PLC0415

    return actor("admin")


@pytest.fixture
def now() -> datetime:
    """The time when a test began."""
    return datetime.now(UTC)


@pytest.fixture
def root_logger_restored() -> Iterator[None]:
    """Restore level and handlers of the root logger after the test.

    Celery's worker sets the level to ERROR and replaces the handlers; without this, the warnings
    of later tests are lost.
    """
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.fixture
def celery_worker(
    redis_url: str, transactional_db: None, root_logger_restored: None
) -> Iterator[None]:
    """A real Celery worker on the real broker, in a thread of this process."""
    from celery.contrib.testing.worker import start_worker  # noqa: PLC0415

    from controlplane.events.task_names import QUEUES  # noqa: PLC0415
    from workers.celery import app  # noqa: PLC0415

    queues = list(QUEUES)
    with start_worker(
        app, pool="solo", perform_ping_check=False, shutdown_timeout=60, queues=queues
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
