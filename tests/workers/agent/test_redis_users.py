"""What the user of a driver reaches in a real Redis: its cluster's data plane, and nothing else."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
import redis

from controlplane.events.task_names import QUEUES
from controlplane.processes.runtime.leases import Leases
from controlplane.settings import CELERY_BROKER_TRANSPORT_OPTIONS, CHANNEL_LAYERS
from controlplane.wire import keys
from controlplane.wire.producer import Producer
from controlplane.wire.query import computation_of
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.schema import ColumnSpec, StreamSchema
from tests.support.driver import KeptDriver
from tests.support.pipeline import Pipeline
from tests.support.redis_server import RedisServer
from tests.support.schemas import assigned
from tests.support.whole_results import read_windows
from workers.agent.driver import Driver, DriverSpec, Site
from workers.agent.redis_users import PREFIX, DriverUsers

START_MS: Final = 1_790_000_000_000
PASSWORD: Final = "of-the-site"
OWN, OTHER = "sf", "ny"
METER: Final = StreamSchema(
    (ColumnSpec("at", "timestamp(ms)", nullable=False), ColumnSpec("n", "int64")), "at"
)
# Of producers and of the pages; by the name of the function that returns them.
CONTROL: Final = {"reachable_key", "trade_request_key", "trade_key", "schemas_key", "previews_key",
                  "preview_key", "producer_key"}  # fmt: skip
BEATS: Final = ["weir:beats", "weir:agent:clusters", "weir:supervisor:children"]
LEASES: Final = ["weir:leases:agent", "weir:members:agent"]
NO_KEY: Final = [
    "KEYS *", "SCAN 0", "RANDOMKEY", "DBSIZE", "FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "SAVE",
    "BGREWRITEAOF", "SHUTDOWN NOSAVE", "CONFIG GET *", "CONFIG SET maxmemory 1", "MONITOR",
    "CLIENT LIST", "CLIENT KILL TYPE normal", "CLIENT PAUSE 1000", "DEBUG SLEEP 0", "SLOWLOG GET",
    "LATENCY RESET", "MEMORY STATS", "MODULE LIST", "REPLICAOF 127.0.0.1 1", "ACL LIST",
    "ACL SETUSER weir-driver-sf +@all", "SCRIPT FLUSH", "SCRIPT KILL", "PUBLISH a b",
    "SUBSCRIBE a", "PSUBSCRIBE *", "COMMAND COUNT", "FAILOVER", "LASTSAVE",
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis with a password, as Weir's own."""
    with RedisServer(tmp_path_factory.mktemp("redis-users")) as server:
        redis.Redis.from_url(server.url).config_set("requirepass", PASSWORD)
        yield server


@pytest.fixture
def site_url(server: RedisServer) -> Iterator[str]:
    """The URL of the site's user, with an empty Redis."""
    url = server.url.replace("//", f"//:{PASSWORD}@")
    with redis.Redis.from_url(url) as client:
        client.flushall()
        yield url


@pytest.fixture
def site(site_url: str) -> Iterator[Any]:
    """A client of the site's user."""
    with redis.Redis.from_url(site_url) as client:
        yield client


@pytest.fixture
def users(site: Any, site_url: str) -> DriverUsers:
    """The users of the drivers of two clusters."""
    result = DriverUsers(site, site_url, "the site's secret", leases_of(site_url))
    result.keep([OWN, OTHER])
    return result


def leases_of(url: str, holder: str = "a") -> Leases:
    """The leases of an agent, which holds all clusters that are free."""
    result = Leases(url, "agent", holder, term_s=60.0, alone_s=60.0)
    result.step([OWN, OTHER])
    return result


@pytest.fixture
def driver(users: DriverUsers) -> Iterator[Any]:
    """A client of the user of a driver."""
    with redis.Redis.from_url(users.url_of(OWN), single_connection_client=True) as client:
        yield client


def keys_of(cluster: str, *, control: bool) -> list[str]:
    """Return a key of each kind of a cluster: those of the control plane, or the others."""
    names = (name for name in vars(keys) if name.endswith("_key") and name[0] != "_")
    special: dict[str, list[Any]] = {"part_key": [7, 8]}
    return [
        getattr(keys, name)(cluster, *special.get(name, [7, 8, 9]))
        for name in names
        if (name in CONTROL) is control
    ]


def is_refused(client: Any, *words: Any) -> bool:
    """Return whether Redis refuses a command for want of a permission."""
    try:
        client.execute_command(*words)
    except redis.exceptions.NoPermissionError:
        return True
    except redis.ResponseError as error:
        # The messages of scripts, in Redis 6.2 and 7.
        return any(part in str(error) for part in ("permission", "executing the script", "ACL"))
    return False


def test_a_driver_reads_and_writes_each_kind_of_key_of_its_cluster(driver: Any) -> None:
    own = keys_of(OWN, control=False)
    assert len(own) > 30
    for key in own:
        assert driver.hset(key, "a", "1") == 1
        assert driver.hget(key, "a") == b"1"
        assert driver.eval("return redis.call('HGET', KEYS[1], 'a')", 1, key) == b"1"
        assert driver.unlink(key) == 1
    assert driver.xadd(keys.telemetry_key(OWN), {"t": "{}"})


@pytest.mark.parametrize("through", ["command", "script", "undeclared", "transaction"])
def test_no_other_key_is_read_or_written(driver: Any, site: Any, through: str) -> None:
    """Of another cluster, of the control plane, of Celery, Channels, caches and beats."""
    celery = str(CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"])
    layer: Any = CHANNEL_LAYERS["default"]
    channels = f"{layer['CONFIG']['prefix']}:group:x"
    other = [
        *keys_of(OTHER, control=False), *keys_of(OTHER, control=True), *keys_of(OWN, control=True),
        *(celery + name for name in (*QUEUES, "_kombu.binding.celery", "unacked")), channels,
        *BEATS, *LEASES, "celery", ":1:session", "weir:{sf", "weir:{sf}",
        f"weir:{{{OWN}}}x:index", "x",
    ]  # fmt: skip
    for key in other:
        for words in (
            ["GET", key], ["SET", key, "1"], ["DEL", key], ["LPUSH", key, "1"], ["RPOP", key],
            ["XADD", key, "*", "a", "b"], ["XRANGE", key, "-", "+"], ["HSET", key, "a", "b"],
            ["HGETALL", key], ["ZADD", key, "1", "a"], ["SADD", key, "a"], ["EXPIRE", key, "1"],
            ["SINTERSTORE", keys.transfers_key(OWN, 1), key], ["MGET", keys.skip_key(OWN), key],
        ):  # fmt: skip
            if through == "transaction":
                driver.execute_command("MULTI")
            assert is_refused(driver, *_through(through, words, key)), (words, through)
            if through == "transaction":
                with pytest.raises(redis.exceptions.ExecAbortError):
                    driver.execute_command("EXEC")
    assert {name.decode() for name in site.scan_iter()} == set(LEASES)


def _through(how: str, words: list[str], key: str) -> list[str]:
    call = ", ".join(f"'{word}'" for word in words)
    if how == "script":
        return ["EVAL", f"return redis.call({call})", "1", key]
    if how == "undeclared":
        # The key is not declared.
        return ["EVAL", f"return redis.call({call})", "0"]
    return words


@pytest.mark.parametrize("command", NO_KEY)
def test_commands_without_keys_are_refused(driver: Any, command: str) -> None:
    assert is_refused(driver, *command.split())


def test_the_data_plane_works_as_the_user_of_the_driver(
    users: DriverUsers, site: Any, site_url: str
) -> None:
    """The source, nodes and sink as Spark calls them; the control plane publishes and appends."""
    pipeline = Pipeline(site, users.url_of(OWN), OWN)
    text = QueryText({"n": "sum(n)"}, window_s=60)
    query = AddQuery(5, 0, 1, (1,), json.dumps(text.to_json()))
    pipeline.publish(*assigned([1], 1, METER), query)
    with Producer(site_url, OWN) as producer:
        for minute in range(5):
            rows = [{"at": START_MS + 60_000 * minute + i, "n": i} for i in range(100)]
            producer.append({1: rows})
            assert pipeline.batch(repeat=2)["in"] == len(rows)
            pipeline.commit()
            pipeline.restart()
    windows = read_windows(site, OWN, 5, computation_of(text, METER.kinds))
    assert sum(dict(window.values)["n"] for window in windows) == 5 * sum(range(100))


def test_users_follow_the_clusters(
    server: RedisServer, site: Any, users: DriverUsers, driver: Any
) -> None:
    """Also after Redis forgot them; a deleted cluster's connections end."""
    assert driver.ping()
    users.keep([OTHER])
    assert [name for name in site.acl_users() if name.startswith(PREFIX)] == [PREFIX + OTHER]
    with pytest.raises(redis.ConnectionError):
        driver.ping()
    site.acl_deluser(PREFIX + OTHER)
    users.keep([OWN, OTHER])
    assert driver.hset(keys.driver_key(OWN), "pid", "1")
    # Once more changes nothing for open connections.
    users.keep([OWN, OTHER])
    assert driver.hget(keys.driver_key(OWN), "pid") == b"1"


def test_the_next_holder_of_a_cluster_shuts_the_driver_of_the_one_before_out(
    site: Any, site_url: str, users: DriverUsers, driver: Any
) -> None:
    """Its connections end and its login is refused, also if its agent was stopped for a while."""
    before = users.url_of(OWN)
    assert driver.ping()
    site.delete(*LEASES)
    other = leases_of(site_url, "b")
    taken = DriverUsers(site, site_url, "the site's secret", other)
    taken.keep([OWN, OTHER])
    with pytest.raises(redis.ConnectionError):
        driver.ping()
    # The agent before, which still believes to hold it, creates the user again where it is missing.
    site.acl_deluser(PREFIX + OWN)
    users.keep([OWN, OTHER])
    assert PREFIX + OWN not in site.acl_users()
    taken.keep([OWN, OTHER])
    with redis.Redis.from_url(before) as client, pytest.raises(redis.AuthenticationError):
        client.ping()
    with redis.Redis.from_url(taken.url_of(OWN)) as client:
        assert client.ping()


def test_redis_has_the_hash_of_a_password_only(users: DriverUsers, site: Any) -> None:
    password = users.url_of(OWN).partition(":")[2].partition(":")[2].partition("@")[0]
    assert len(password) == 64
    assert password not in str(site.execute_command("ACL LIST"))
    assert users.url_of(OWN) != users.url_of(OTHER)


def test_a_driver_has_no_password_without_the_lease(site: Any, site_url: str) -> None:
    users = DriverUsers(site, site_url, "secret", leases_of(site_url))
    with pytest.raises(OSError, match="third"):
        users.url_of("third")


def test_without_the_right_to_create_users_drivers_run_as_the_site(
    site: Any, site_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a Redis of somebody else; said once, until the right is given."""
    site.execute_command("ACL SETUSER", "tenant", "reset", "on", ">pw", "~*", "+@all", "-acl")
    url = site_url.replace(f":{PASSWORD}@", "tenant:pw@")
    with redis.Redis.from_url(url) as client:
        users = DriverUsers(client, url, "secret", leases_of(site_url))
        users.keep([OWN])
        users.keep([OWN])
        assert users.url_of(OWN) == url
        assert [row.levelname for row in caplog.records if row.name == "weir.agent"] == ["WARNING"]
        assert "pw" not in caplog.text
        site.execute_command("ACL SETUSER", "tenant", "+acl")
        users.keep([OWN])
    with redis.Redis.from_url(users.url_of(OWN)) as driver:
        assert driver.ping()
    site.acl_deluser("tenant")


def test_no_driver_inherits_a_secret_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("REDIS_URL", "REDIS_URL_FILE", "DATABASE_URL", "WEIR_SECRET_KEY"):
        monkeypatch.setenv(name, "of-the-site")
    site = Site(
        tmp_path, "redis://of-the-site", {}, driver_url=lambda cluster: f"redis://{cluster}",
        results_url=lambda cluster: f"postgresql://{cluster}",
    )  # fmt: skip
    spec = DriverSpec(OWN, 1, 1, 1000)
    started = Driver(spec, site, lambda *_: ["sleep", "60"])
    try:
        environment = psutil.Process(started.pid).environ()
    finally:
        assert started.kill()
    assert environment["REDIS_URL"] == "redis://sf"
    assert environment["WEIR_RESULTS_URL"] == "postgresql://sf"
    assert "of-the-site" not in str(environment)


@pytest.mark.nightly("spark")
@pytest.mark.spark
def test_the_processes_of_a_real_driver_log_in_as_its_user(site_url: str, tmp_path: Path) -> None:
    """Started by a real agent: the driver, and its Python workers."""
    driver = KeptDriver(site_url, tmp_path)
    Pipeline(driver.client, site_url, OWN).publish(*assigned([1], 2, METER))
    driver.start()
    try:
        with Producer(site_url, OWN) as producer:
            producer.append({1: [{"at": START_MS, "n": 1}]})
        driver.wait_for(lambda rows: sum(row["in"] for row in rows) > 0, "a batch")
        jvm = psutil.Process(driver.driver_pid())
        ports, told = set(), ""
        for process in (jvm, *jvm.children(recursive=True)):
            # Python workers may end meanwhile.
            with suppress(psutil.NoSuchProcess):
                ports |= {connection.laddr.port for connection in process.net_connections("tcp")}
                told += str(process.environ()) + str(process.cmdline())
        clients: Any = driver.client.client_list()
        names = {row["user"] for row in clients if int(row["addr"].rpartition(":")[2]) in ports}
        assert names == {PREFIX + OWN}
        assert told
        assert PASSWORD not in told
    finally:
        driver.end()
