"""Where Weir speaks to on somebody's word: public addresses only, and the one it looked at."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

from controlplane.integrations.outbound import AddressRejected, AddressUnreachable, post, resolved
from controlplane.wire.network import requests
from tests.support.destinations import RECEIVERS, list_destinations


class _Answers(BaseHTTPRequestHandler):
    """Answers a POST with a redirect or with much, by its path."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(302 if self.path == "/away" else 200)
        self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()
        self.wfile.write(self.headers["Host"].encode() + b"x" * 100_000)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as running:
        thread = Thread(target=running.serve_forever)
        thread.start()
        yield running.server_port
        running.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "[::1]", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "100.100.100.200", "168.63.129.16", "224.0.0.1",
        "[fe80::1]", "[fd00:ec2::254]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]",
        "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::]", "[::]", "[ff02::1]", "2130706433", "0x7f.1",
        "127.1", "192.0.2.1", "255.255.255.255",
    ],
)  # fmt: skip
def test_what_is_not_public_is_refused(host: str) -> None:
    """However it is written: each leads to this machine, its site, its cloud, or nowhere."""
    with pytest.raises(
        AddressRejected, match="not an https address of a public host, and is not in the list"
    ):
        resolved(f"https://{host}/hook")


@pytest.mark.parametrize(
    "url",
    [
        "http://8.8.8.8/", "ftp://8.8.8.8/", "https:///x", "https://user:pw@8.8.8.8/", "8.8.8.8",
        "https://8.8.8.8:99999/", "https://8.8.8.8/#x", "https://8.8.8.8/\r\nX: y", "file:///etc/x",
        "https://[::1", f"https://8.8.8.8/{'x' * 500}", "",
    ],
)  # fmt: skip
def test_what_is_no_plain_https_url_is_refused(url: str) -> None:
    with pytest.raises(AddressRejected):
        resolved(url)


@pytest.mark.parametrize("host", ["8.8.8.8", "[2001:4860:4860::8888]"])
def test_a_public_address_is_where_it_leads(host: str) -> None:
    assert resolved(f"https://{host}:8443/hook").address == host.strip("[]")


def test_one_private_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with two addresses could lead to either."""
    both = [(0, 0, 0, "", (ip, 443)) for ip in ("8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: both)
    with pytest.raises(AddressRejected):
        resolved("https://two.example/")


def test_a_name_without_an_address_is_told_where_the_site_lists_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of other names a refusal does not tell whether the network of the site has them."""
    with pytest.raises(AddressRejected, match="check the spelling"):
        resolved("https://nowhere.invalid/")
    list_destinations(monkeypatch, "https://nowhere.invalid:443")
    with pytest.raises(AddressUnreachable, match="has no address"):
        resolved("https://nowhere.invalid/")


def test_a_site_may_allow_a_network_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its named ports, http too; others stay closed: a metrics page has no password."""
    list_destinations(monkeypatch, "http://10.1.0.0/16:80 https://[fd00::/8]:8443")
    assert resolved("http://10.1.2.3/hook").address == "10.1.2.3"
    assert resolved("https://[fd00::1]:8443/hook").address == "fd00::1"
    for url in ("https://10.2.0.1/hook", "http://10.1.2.3:9090/hook", "https://[fd00::1]/hook"):
        with pytest.raises(AddressRejected):
            resolved(url)


def test_a_request_goes_to_the_address_that_was_looked_at(
    server: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that leads elsewhere a moment later is not asked again; the host stays the name's."""
    list_destinations(monkeypatch, RECEIVERS)
    target = resolved(f"http://localhost:{server}/hook")

    def elsewhere(host: str, *args: object, **kwargs: object) -> object:
        raise AssertionError(f"{host} was looked up again")

    direct = socket.create_connection

    def by_address(address: tuple[str, int], *args: object, **kwargs: object) -> socket.socket:
        assert address[0] == "127.0.0.1"
        monkeypatch.undo()
        return direct(address, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "create_connection", by_address)
    monkeypatch.setattr("socket.getaddrinfo", elsewhere)
    status, body = post(target, {}, b"{}")
    assert (status, body[: len("localhost")]) == (200, "localhost")
    assert len(body) <= 2000


def test_a_name_that_resolves_to_another_address_later_reaches_the_checked_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """DNS rebinding: a forbidden service listens at the second address, on the same port."""
    with socket.create_server(("127.0.0.1", 0)) as allowed:
        port = allowed.getsockname()[1]
        list_destinations(monkeypatch, f"http://127.0.0.1:{port}")
        with socket.create_server(("127.0.0.2", port)) as forbidden:
            lookup, answers = socket.getaddrinfo, iter(["127.0.0.1"])

            def rebinding(host: str, *args: Any, **kwargs: Any) -> Any:
                if host == "rebinding.example":
                    host = next(answers, "127.0.0.2")
                return lookup(host, *args, **kwargs)

            monkeypatch.setattr(socket, "getaddrinfo", rebinding)
            target = resolved(f"http://rebinding.example:{port}/")
            with pytest.raises(AddressRejected):
                resolved(target.url)
            monkeypatch.setattr(requests, "LONGEST_S", 0.2)
            with pytest.raises(AddressUnreachable):
                post(target, {}, b"{}")
            allowed.settimeout(0)
            allowed.accept()[0].close()
            forbidden.settimeout(0)
            with pytest.raises(BlockingIOError):
                forbidden.accept()


def test_a_redirect_is_not_followed(server: int, monkeypatch: pytest.MonkeyPatch) -> None:
    list_destinations(monkeypatch, RECEIVERS)
    target = resolved(f"http://127.0.0.1:{server}/away")
    assert post(target, {}, b"{}")[0] == 302


def test_who_does_not_answer_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    list_destinations(monkeypatch, RECEIVERS)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        target = resolved(f"http://127.0.0.1:{taken.getsockname()[1]}/")
        with pytest.raises(AddressUnreachable):
            post(target, {}, b"{}")


def test_an_answer_that_trickles_in_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each byte comes in time, and the whole would never end."""
    list_destinations(monkeypatch, RECEIVERS)
    monkeypatch.setattr(requests, "LONGEST_S", 0.5)
    over = Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle() -> None:
            taken, _ = listening.accept()
            with taken, suppress(OSError):
                taken.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
                while not over.wait(0.05):
                    taken.sendall(b"x")

        thread = Thread(target=trickle)
        thread.start()
        with pytest.raises(AddressUnreachable):
            post(resolved(f"http://127.0.0.1:{listening.getsockname()[1]}/"), {}, b"{}")
        over.set()
        thread.join()
