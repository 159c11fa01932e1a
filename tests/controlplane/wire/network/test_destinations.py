"""What a site may connect to: tricky addresses at every door, and names that change in between."""

import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
from authlib.integrations.requests_client import OAuth2Session
from confluent_kafka import KafkaException, Producer
from django.test import Client
from pytest_django import Settings
from requests import RequestException

from controlplane.access.logins.single_sign_on import ProviderApp
from controlplane.integrations import outbound
from controlplane.wire.errors import BadLogUrl, LogUnavailable
from controlplane.wire.log import check as check_module
from controlplane.wire.log import open_log
from controlplane.wire.log.check import check_log
from controlplane.wire.log.kafka_clients import new_client
from controlplane.wire.network.destinations import LIST, NotAllowed, addresses
from controlplane.wire.redis_clients import connect
from tests.support.kafka import running_kafka
from tests.support.rebinding import NAME, open_and_closed_port, rebind, unmet_server

pytestmark = pytest.mark.nightly("access")

# A port of each protocol is listed, so that hosts are resolved; no tricky host is.
LISTED = (
    "redis://10.1.0.0/16:1-65535 kafka://10.1.0.0/16:1-65535 http://10.1.0.0/16:1-65535"
    " redis://log.example:6379"
)
TRICKY = [
    "127.0.0.1", "localhost", "[::1]", "0.0.0.0", "10.2.3.4", "172.16.0.1", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "100.100.100.200", "168.63.129.16", "224.0.0.1",
    "[fe80::1]", "[fd00:ec2::254]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[fec0::1]", "[::]",
    "[ff02::1]", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0", "255.255.255.255",
    "localhost.", "nowhere.invalid",
]  # fmt: skip


def session() -> Any:
    return ProviderApp.client_cls()


def by_sign_on(url: str) -> None:
    session().request("GET", url, withhold_token=True, timeout=1)


def by_log(url: str) -> None:
    check_log(url, "sf")


DOORS = {
    "redis": by_log, "rediss": by_log, "kafka": by_log, "http": outbound.resolved,
    "https": outbound.resolved, "sign-on http": by_sign_on, "sign-on https": by_sign_on,
}  # fmt: skip
REFUSALS = (BadLogUrl, outbound.AddressRejected, RequestException, NotAllowed)


@pytest.fixture
def no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where something connects."""

    def connected(_: Any, address: Any) -> None:
        raise AssertionError(f"connected to {address}")

    monkeypatch.setattr(socket.socket, "connect", connected)


@pytest.mark.usefixtures("no_connection")
@pytest.mark.parametrize("host", TRICKY)
@pytest.mark.parametrize("door", DOORS)
def test_no_door_leads_to_an_unlisted_address(
    door: str, host: str, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """However it is written, and with one sentence for all."""
    monkeypatch.setenv(LIST, LISTED)
    settings.OIDC_ISSUER = "https://login.example"
    if host.startswith("[::ffff") and door == "kafka":
        host = host.replace("::ffff:", "::FFFF:")
    with pytest.raises(REFUSALS) as refused:
        DOORS[door](f"{door.rpartition(' ')[2]}://{host}:6379/0")
    assert "is not in the list of the site (setting WEIR_DESTINATIONS)" in str(refused.value)


@pytest.mark.usefixtures("no_connection")
@pytest.mark.parametrize(
    "url",
    [
        "redis://log.example:6379@127.0.0.1:22/0", "redis://log.example@127.0.0.1/0",
        "redis://?host=127.0.0.1&port=22", "redis://log.example:6379/0?host=127.0.0.1",
        "redis://log.example:6380", "redis://log.example:99999", "redis://[::1", "redis://a:b",
        "redis://log.example:6379/0?socket_timeout=9999", "redis://log.example?path=/run/x.sock",
        "unix:///var/run/docker.sock", "unix:relative", "unix:///log.sock/../var/run/docker.sock",
        "kafka://10.1.0.1:9092,127.0.0.1:22/t", "kafka://10.1.0.1:9092@127.0.0.1:22/t",
        "kafka://10.1.0.1:0/t", "kafka://[::1/t", "rediss://log.example?ssl_keyfile=/etc/shadow",
        "redis://log.example.evil.example:6379", "redis://evil.example#log.example:6379",
    ],
)  # fmt: skip
def test_a_url_that_hides_its_place_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIST, f"{LISTED} unix:///log.sock")
    with pytest.raises(BadLogUrl):
        check_log(url, "sf")


@pytest.mark.parametrize("scheme", ["redis", "rediss", "kafka"])
@pytest.mark.parametrize("listed", ["", "redis://10.0.0.0/8:1-65535 kafka://10.0.0.0/8:1-65535"])
def test_an_open_port_and_a_closed_one_are_refused_alike(
    scheme: str, listed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIST, listed)
    server, *ports = open_and_closed_port()
    told = set()
    with server:
        for port in ports:
            with pytest.raises(BadLogUrl) as refused:
                check_log(f"{scheme}://127.0.0.1:{port}/t", "sf")
            told.add(str(refused.value).replace(str(port), "PORT"))
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert len(told) == 1


def test_a_listed_name_or_network_is_connected_to(
    redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = urlsplit(redis_server).port
    for listed in (
        f"redis://localhost:{port}",
        "redis://127.0.0.0/8:1-65535 redis://[::1]:1-65535",
    ):
        monkeypatch.setenv(LIST, listed)
        check_log(redis_server.replace("127.0.0.1", "LocalHost."), "sf")
    with pytest.raises(BadLogUrl, match="in the list"):
        check_log(f"kafka://127.0.0.1:{port}/t", "sf")


def test_a_name_that_is_listed_leads_to_no_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIST, f"redis://{NAME}:1 kafka://missing.invalid:1 http://169.254.0.1:80")
    rebind(monkeypatch, "127.0.0.1", "169.254.169.254", "0.0.0.0")
    assert addresses("redis", NAME, 1) == ["127.0.0.1"]
    for _ in range(2):
        with pytest.raises(NotAllowed):
            addresses("redis", NAME, 1)
    with pytest.raises(OSError, match=r"missing\.invalid has no address: is the name spelled"):
        addresses("kafka", "missing.invalid", 1)
    assert addresses("http", "169.254.0.1", 80) == ["169.254.0.1"]


def test_outside_of_a_site_there_is_no_list(
    redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Producers name their log themselves."""
    monkeypatch.delenv(LIST)
    assert connect(redis_server).ping()
    with running_kafka() as address:
        assert new_client(Producer, address, {}).list_topics(timeout=60).brokers


def test_redis_is_connected_to_at_the_checked_address(
    redis_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = urlsplit(redis_server).port
    assert port is not None
    monkeypatch.setenv(LIST, f"redis://127.0.0.1:{port}")
    given = rebind(monkeypatch, "127.0.0.1")
    with unmet_server(port), connect(redis_server.replace("127.0.0.1", NAME)) as client:
        assert client.ping()
        assert given == ["127.0.0.1"]
        client.connection_pool.disconnect()
        with pytest.raises(redis.ConnectionError, match="is not in the list of the site"):
            client.ping()


def test_a_broker_is_connected_to_at_the_checked_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "LIMIT_S", 2.0)
    with running_kafka() as address:
        port = int(address.rpartition(":")[2])
        monkeypatch.setenv(LIST, f"kafka://127.0.0.1:{port}")
        given = rebind(monkeypatch, "127.0.0.1")
        with unmet_server(port), pytest.raises(BadLogUrl, match="that WEIR_DESTINATIONS has all"):
            check_log(f"kafka://{NAME}:{port}/t", "sf")
        assert given[:2] == ["127.0.0.1", "127.0.0.2"]
        rebind(monkeypatch, "127.0.0.1", "127.0.0.1")
        with unmet_server(port):
            check_log(f"kafka://{NAME}:{port}/t", "sf")


@pytest.fixture
def two_brokers() -> Any:
    """Two brokers in this process."""
    return Producer({"bootstrap.servers": "x", "test.mock.num.brokers": 2, "log_level": 2})


def test_a_broker_that_a_broker_names_must_be_listed(
    two_brokers: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second leads the partition: its messages are behind an address that is not listed."""
    monkeypatch.setattr(check_module, "LIMIT_S", 2.0)
    brokers = two_brokers.list_topics(timeout=60).brokers
    for number in range(50):
        topic = f"t-{number}"
        leader = two_brokers.list_topics(topic, timeout=60).topics[topic].partitions[0].leader
        if leader == 2:
            break
    first, second = (f"{brokers[n].host}:{brokers[n].port}" for n in (1, 2))
    monkeypatch.setenv(LIST, f"kafka://{first}")
    url = f"kafka://{first}/{topic}"
    with pytest.raises(BadLogUrl, match=f"resolve '{second}'.*WEIR_DESTINATIONS has all brokers"):
        check_log(url, "sf")
    monkeypatch.setenv(LIST, f"kafka://{first} kafka://{second}")
    check_log(url, "sf")


def test_a_list_that_has_become_shorter_holds_for_open_logs(
    redis_server: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a process opens the log of a cluster, not only where the URL is given."""
    site = "unix:///site.sock"
    monkeypatch.setenv(LIST, "")
    for url in (redis_server, "unix:///var/run/docker.sock"):
        with pytest.raises(LogUnavailable, match="is not in the list of the site"):
            open_log(url, "sf", site).newest_entries([1], 1)
    client = new_client(
        Producer, "127.0.0.1:9", {"error_cb": lambda error: told.append(error.str())}
    )
    told: list[str] = []
    with pytest.raises(KafkaException):
        client.list_topics(timeout=1)
    client.poll(1)
    assert any("Failed to resolve '127.0.0.1:9'" in error for error in told)


def test_the_endpoints_of_a_provider_are_checked_one_by_one(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """The issuer is a destination; where its metadata or a redirect lead is not, for that."""
    monkeypatch.setenv(LIST, "")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert issubclass(type(session()), OAuth2Session)
    server, port, closed = open_and_closed_port()
    with server:
        settings.OIDC_ISSUER = f"http://{NAME}:{closed}"
        for url in (f"http://{NAME}:{port}/", f"http://127.0.0.1:{port}/", "http://8.8.8.8/"):
            with pytest.raises(OSError, match="is not in the list of the site"):
                by_sign_on(url)
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_provider_is_connected_to_at_the_checked_address(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """TLS verifies the certificate of the name; a redirect is resolved again, and checked."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Provider) as server:
        Thread(target=server.serve_forever).start()
        monkeypatch.setenv(LIST, f"http://127.0.0.1:{server.server_port}")
        settings.OIDC_ISSUER = "https://login.example"
        given = rebind(monkeypatch, "127.0.0.1")
        url = f"http://{NAME}:{server.server_port}"
        with unmet_server(server.server_port):
            found = session().request("GET", url, withhold_token=True, timeout=10)
            assert (found.text, found.url) == (f"{NAME}:{server.server_port}", f"{url}/")
            with pytest.raises(RequestException, match="in the list"):
                by_sign_on(url)
        assert given == ["127.0.0.1", "127.0.0.2"]
        with pytest.raises(RequestException, match="http://localhost:1 is not an https"):
            by_sign_on(f"http://127.0.0.1:{server.server_port}/away")
        server.shutdown()


@pytest.mark.django_db
def test_a_log_in_by_a_provider_that_leads_elsewhere_ends_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setenv(LIST, "")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Provider) as server:
        Thread(target=server.serve_forever).start()
        settings.OIDC_ISSUER = f"http://127.0.0.1:{server.server_port}/away"
        settings.OIDC_CLIENT_ID = "weir"
        answer = Client().get("/login/sso/")
        server.shutdown()
    assert answer.status_code in {302, 503}
    assert "localhost" not in answer.headers.get("Location", "") + answer.content.decode()


class _Provider(BaseHTTPRequestHandler):
    """Answers with the host that a request names, or with a redirect."""

    def do_GET(self) -> None:
        self.send_response(302 if self.path.startswith("/away") else 200)
        self.send_header("Location", "http://localhost:1/")
        self.end_headers()
        self.wfile.write(self.headers["Host"].encode())

    def log_message(self, *args: object) -> None:
        pass
