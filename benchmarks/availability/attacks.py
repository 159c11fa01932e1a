"""What one user or an anonymous client takes from all others, attack by attack.

    python -m benchmarks.availability.attacks [--attacks NAME ...] [--seconds 15] [--clients 8]
                                              [--queries 5000] [--postgres]

Starts the web processes and the worker with the commands of `make run`, with a provider of single
sign-on and a cluster's log that accept connections and never answer. While the clients of an attack
send their requests, another user requests a page and creates queries, and `/healthz` is requested.
Reported are the 99th percentile of `/healthz`, the 95th of the page, the longest wait of a write,
the largest memory of a web process, and the responses to the attack.
"""

import argparse
import io
import json
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import httpx
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.control_plane import LOCAL, fresh_weir, running_services
from tests.support.texts import SUMMARY_JSON

ROOT: Final = "/api/v1/clusters"
JSON: Final = "application/json"
MIB: Final = 2**20
PAUSE_S: Final = 0.05
# A client that never answers a request of its own waits for no longer.
CLIENT_S: Final = 120.0
# The targets: seconds, and bytes.
HEALTH_S, PAGE_S, WRITE_S, MEMORY = 0.3, 2.0, 2.0, 512 * MIB


@dataclass
class Site:
    """A running Weir and what the attacks use of it."""

    url: str
    token: str
    other: str
    headers: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.headers = {"authorization": f"Bearer {self.token}"}

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=CLIENT_S, **options)


@dataclass
class Measured:
    """Seconds of requests by kind, the largest memory, and responses."""

    seconds: dict[str, list[float]] = field(
        default_factory=lambda: {"health": [], "page": [], "write": []}
    )
    memory: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)


Attack = Callable[[Site, httpx.Client], str]


def post(path: str, content: bytes, kind: str, headers: dict[str, str] | None = None) -> Attack:
    """Return an attack that posts a body with a token."""

    def attack(site: Site, client: httpx.Client) -> str:
        sent = {**site.headers, "content-type": kind, **(headers or {})}
        return str(client.post(f"{ROOT}/{path}", content=content, headers=sent).status_code)

    return attack


def repeated_keys(size: int) -> bytes:
    return b"{" + b'"a":0,' * (size // 6 - 2) + b'"b":0}'


def largest_json() -> bytes:
    """Return a body of the largest size, of as many objects as are allowed."""
    text = b"x" * 20
    return b'{"queries":[' + b",".join([b'{"%s":0}' % text] * 450_000) + b"]}"


def arrow_bomb() -> bytes:
    """Return 64 KiB that unpack to gigabytes."""
    sink = io.BytesIO()
    column = pa.array([0.0] * 2_000_000)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    schema = pa.schema([(f"c{number}", pa.float64()) for number in range(40)])
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(pa.record_batch([column] * 40, schema=schema))
    return sink.getvalue()


def parquet_bomb() -> bytes:
    sink = io.BytesIO()
    table = pa.table({"car": pa.array(["x" * 100_000] * 20_000).dictionary_encode()})
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def bulk(valid: bool) -> bytes:
    """Return a request of 10,000 queries, which take seconds to check."""
    streams = ["s1"] if valid else ["nowhere"]
    rows = [
        {"name": f"bulk-{time.time_ns()}-{number}", "streams": streams, "text": SUMMARY_JSON}
        for number in range(10_000)
    ]
    return json.dumps({"queries": rows}).encode()


def preview(site: Site, client: httpx.Client) -> str:
    body = json.dumps({"streams": ["s1"], "text": SUMMARY_JSON}).encode()
    key = {"idempotency-key": f"key-{time.time_ns()}"}
    return post("bench/queries/preview", body, JSON, key)(site, client)


def half_login(site: Site, client: httpx.Client) -> str:
    """Send half of a form for the log-in on each of some connections, and wait for their end."""
    url = httpx.URL(site.url)
    head = (
        f"POST /login/ HTTP/1.1\r\nHost: {url.host}\r\nContent-Length: 200\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n\r\nusername="
    )
    with ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection((url.host, url.port or 80), CLIENT_S))
            for _ in range(10)
        ]
        for connection in connections:
            connection.sendall(head.encode())
        return connections[0].recv(20).decode("latin-1").split(" ")[1]


def quiet(site: Site, client: httpx.Client) -> str:
    time.sleep(1)
    return "none"


def sign_on(site: Site, client: httpx.Client) -> str:
    return str(client.get("/login/sso/").status_code)


BOMB: Final = "bench/streams/s1/records"
ATTACKS: Final[dict[str, Callable[[], Attack]]] = {
    "none": lambda: quiet,
    "repeated keys, 121 KB": lambda: post("bench/queries", repeated_keys(121_000), JSON),
    "repeated keys, 16 MB": lambda: post("bench/queries", repeated_keys(16 * 10**6), JSON),
    "preview with a key": lambda: preview,
    "append to a silent log": lambda: post("silent/streams/s1/records", b'[{"speed":1}]', JSON),
    "Arrow bomb": lambda: post(BOMB, arrow_bomb(), "application/vnd.apache.arrow.stream"),
    "Parquet bomb": lambda: post(BOMB, parquet_bomb(), "application/vnd.apache.parquet"),
    "half-sent logins": lambda: half_login,
    "silent sign-on": lambda: sign_on,
    "slow requests": lambda: post("bench/queries/bulk", bulk(valid=False), JSON),
    "largest bodies": lambda: post("bench/queries/bulk", largest_json(), JSON),
}


@contextmanager
def silent_server() -> Iterator[int]:
    """Yield the port of a server that accepts connections and never answers."""
    with socket.create_server((LOCAL, 0), backlog=1000) as listener:
        kept: list[socket.socket] = []

        def accept() -> None:
            try:
                while True:
                    kept.append(listener.accept()[0])
            except OSError:
                return

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        for connection in kept:
            connection.close()


def measure(site: Site, attack: Attack, session: str, options: argparse.Namespace) -> Measured:
    """Return what others measured while clients attacked."""
    measured, stop = Measured(), threading.Event()
    works: list[Callable[[], None]] = [
        *[partial(_attack, site, attack, measured, stop)] * options.clients,
        partial(_probe, site, measured, stop, "health", lambda client: client.get("/healthz")),
        partial(_probe, site, measured, stop, "page", partial(_page, session)),
        partial(_probe, site, measured, stop, "write", partial(_write, site.other)),
        partial(_watch_memory, measured, stop),
    ]
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    time.sleep(options.seconds)
    stop.set()
    for thread in threads[options.clients :]:
        thread.join(CLIENT_S)
    return measured


def _attack(site: Site, attack: Attack, measured: Measured, stop: threading.Event) -> None:
    with site.client() as client:
        while not stop.is_set():
            try:
                measured.answers[attack(site, client)] += 1
            except (httpx.HTTPError, OSError, IndexError) as error:
                measured.answers[type(error).__name__] += 1


def _probe(
    site: Site,
    measured: Measured,
    stop: threading.Event,
    kind: str,
    request: Callable[[httpx.Client], httpx.Response],
) -> None:
    with site.client() as client:
        while not stop.is_set():
            started = time.perf_counter()
            try:
                status = request(client).status_code
            except httpx.HTTPError:
                status = 0
            measured.seconds[kind].append(time.perf_counter() - started)
            if status not in (200, 201):
                measured.failures[f"{kind} {status}"] += 1
            time.sleep(PAUSE_S)


def _page(session: str, client: httpx.Client) -> httpx.Response:
    return client.get("/clusters/bench/queries/", cookies={"sessionid": session})


def _write(token: str, client: httpx.Client) -> httpx.Response:
    body = {"name": f"other-{time.time_ns()}", "streams": ["s2"], "text": SUMMARY_JSON}
    headers = {"authorization": f"Bearer {token}"}
    return client.post(f"{ROOT}/bench/queries", json=body, headers=headers)


def _watch_memory(measured: Measured, stop: threading.Event) -> None:
    while not stop.is_set():
        for process in psutil.Process().children(recursive=True):
            try:
                if "controlplane.processes.runtime.web" in process.cmdline():
                    measured.memory = max(measured.memory, process.memory_info().rss)
            except psutil.Error:
                continue
        time.sleep(0.1)


def report(name: str, measured: Measured) -> None:
    """Print the figures of an attack; an asterisk marks those beyond their target."""
    health = _percentile(measured.seconds["health"], 0.99)
    page = _percentile(measured.seconds["page"], 0.95)
    write = max(measured.seconds["write"], default=0.0)
    parts = [
        f"health p99 {health:5.2f} s{_mark(health, HEALTH_S)}",
        f"page p95 {page:5.2f} s{_mark(page, PAGE_S)}",
        f"longest write {write:5.2f} s{_mark(write, WRITE_S)}",
        f"memory {measured.memory / MIB:4.0f} MiB{_mark(measured.memory, MEMORY)}",
        f"n {'/'.join(str(len(taken)) for taken in measured.seconds.values())}",
        f"attack: {dict(measured.answers)}",
        f"refused: {dict(measured.failures)}" if measured.failures else "",
    ]
    print(f"{name:24} {'  '.join(filter(None, parts))}", flush=True)


def _mark(value: float, most: float) -> str:
    return "*" if value > most else " "


def _percentile(taken: Sequence[float], share: float) -> float:
    ordered = sorted(taken)
    return ordered[min(len(ordered) - 1, round(len(ordered) * share))] if ordered else 0.0


def main() -> None:
    options = parse_options()
    with ExitStack() as stack:
        port = stack.enter_context(silent_server())
        os.environ |= {
            "WEIR_OIDC_ISSUER": f"http://{LOCAL}:{port}", "WEIR_OIDC_CLIENT_ID": "weir",
        }  # fmt: skip
        data = stack.enter_context(fresh_weir(postgres=options.postgres))
        token, other, session = _fill(options.queries, port)
        url = stack.enter_context(running_services(data))
        site = Site(url, token, other)
        for name in options.attacks:
            attack = ATTACKS[name]()
            report(name, measure(site, attack, session, options))
            # The last requests of the clients end.
            time.sleep(options.pause)


def _fill(queries: int, port: int) -> tuple[str, str, str]:
    """Create the clusters and users; return the attacker's token, another's, and its session."""
    from django.conf import settings  # noqa: PLC0415
    from django.contrib.auth.models import Group, User  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    from benchmarks.api_filling import fill  # noqa: PLC0415
    from controlplane.access import tokens  # noqa: PLC0415
    from controlplane.models import Cluster, Stream  # noqa: PLC0415
    from workers.demo.recording import REPORT  # noqa: PLC0415

    fill(queries, 50, 10)
    log = f"redis://{LOCAL}:{port}/0"
    silent = Cluster.objects.create(slug="silent", name="silent", log_url=log)
    Stream.objects.create(cluster=silent, name="s1", schema=REPORT.to_json())
    group = Group.objects.get_or_create(name="operator")[0]
    users = []
    for name in ("attacker", "other"):
        user = User.objects.create_user(name)
        user.groups.add(group)
        users.append(user)
    settings.ALLOWED_HOSTS = ["testserver", LOCAL]
    browser = Client()
    browser.force_login(users[1])
    session = browser.cookies[settings.SESSION_COOKIE_NAME].value
    made = [str(tokens.create(user, "bench")) for user in users]
    return made[0], made[1], session


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options of a command line, by default that of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attacks", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    parser.add_argument("--seconds", type=float, default=15.0, help="of each attack")
    parser.add_argument("--pause", type=float, default=5.0, help="seconds between attacks")
    parser.add_argument("--clients", type=int, default=16, help="of an attack")
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--postgres", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
