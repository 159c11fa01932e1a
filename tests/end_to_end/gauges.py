"""Tide gauges: a cluster of its own on a running Weir, and what its results have to be."""

import copy
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import pyarrow as pa

from tests.end_to_end.surviving import told
from tests.support.running_weir import RunningWeir

CLUSTER: Final = "coast"
SHALLOW: Final = 600.0
# Spark's start on a busy machine, with room, after the longest pause between two starts.
PATIENCE_S: Final = 600.0
_NOON: Final = datetime(2024, 3, 10, 12, tzinfo=UTC)
_PIERS: Final = ("north", "südkai", "mole 3", "")
_LOGIN: Final = ("harbourmaster", "a pier of 1887")
_ACCOUNT: Final = """
from controlplane.access import tokens
from django.contrib.auth.models import User
user = User.objects.create_superuser({name!r}, password={password!r})
print(tokens.create(user, "losses"))
"""
_CLUSTER: Final[dict[str, Any]] = {
    "weir": 1,
    "cluster": {"slug": CLUSTER, "name": "Coast", "slots": 2, "trigger_ms": 500},
    "nodes": [{"index": 0, "name": "east"}, {"index": 1, "name": "west"}],
    "streams": [{
        "name": "gauges",
        "declared_rate": 50,
        "schema": {
            "columns": [
                {"name": "read_at", "type": "timestamp(us)", "nullable": False},
                {"name": "pier", "type": "string"},
                {"name": "level", "type": "float64"},
                {"name": "toll", "type": "decimal(12, 2)"},
            ],
            "event_time": "read_at",
        },
    }],
    "queries": [
        {"name": "piers", "streams": ["gauges"], "text": {
            "key": ["pier"], "window_s": 600, "lateness_s": 600,
            "aggregates": {"n": "count(*)", "tolls": "sum(toll)", "high": "max(level)"}}},
        {"name": "coast", "streams": ["gauges"], "text": {
            "window_s": 600, "lateness_s": 600,
            "aggregates": {"n": "count(*)", "piers": "count_distinct(pier)"}}},
    ],
    "placement": {"piers": 0, "coast": 1},
}  # fmt: skip
_TYPES: Final[list[Any]] = [
    ("read_at", pa.timestamp("us", "UTC")),
    ("pier", pa.string()),
    ("level", pa.float64()),
    ("toll", pa.decimal128(12, 2)),
]
_COLUMNS: Final[Any] = pa.schema(_TYPES)


def cluster_document() -> dict[str, Any]:
    """Return a copy of the cluster's description."""
    return copy.deepcopy(_CLUSTER)


class Coast:
    """The cluster: its records so far, its results, and ways to look at it."""

    def __init__(self, weir: RunningWeir, document: dict[str, Any] | None = None) -> None:
        self.weir = weir
        self.document = document or cluster_document()
        self.records: list[dict[str, Any]] = []
        self._chance = random.Random(1887)
        self._sequence = 0
        name, password = _LOGIN
        token = told(weir, _ACCOUNT.format(name=name, password=password))
        self.api = httpx.Client(
            base_url=f"{weir.url}/api/v1/clusters/{CLUSTER}",
            headers={"Authorization": f"Bearer {token}"}, timeout=30.0,
        )  # fmt: skip
        self.browser = httpx.Client(base_url=weir.url, timeout=30.0, follow_redirects=True)

    def begin(self) -> None:
        """Import the cluster, start it, and wait until its queries run."""
        document = self.weir.data.parent / "coast.json"
        document.write_text(json.dumps(self.document))
        command = ["apply", str(document), "--as", _LOGIN[0]]
        environment = {**os.environ, **self.weir.environment, "REDIS_URL": self.weir.redis_url()}
        done = subprocess.run(
            [sys.executable, "-m", "controlplane.cli.main", *command],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        self.api.post("/start", json={}).raise_for_status()
        self.wait(lambda: self.state() in {"running", "catching up"})

    def send(self, window: int, count: int = 40, piers: Sequence[str | None] = _PIERS) -> None:
        """Append records of a window of ten minutes, once, however long that takes."""
        start = _NOON + timedelta(minutes=10 * window)
        rows = [
            {
                "read_at": start + timedelta(seconds=self._chance.randrange(600)),
                "pier": self._chance.choice([*piers, None] if piers is _PIERS else piers),
                "level": self._chance.randrange(-400, 900) / 4,
                "toll": Decimal(self._chance.randrange(-500, 90_000)) / 100,
            }
            for _ in range(count)
        ]
        self._sequence += 1
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, _COLUMNS) as stream:
            stream.write_table(pa.Table.from_pylist(rows, _COLUMNS))
        body = sink.getvalue().to_pybytes()
        self.wait(lambda: self._append(body))
        self.records += rows

    def _append(self, body: bytes) -> bool:
        try:
            answer = self.api.post(
                "/streams/gauges/records",
                params={"producer": "gauges", "sequence": self._sequence},
                content=body,
                headers={"Content-Type": "application/vnd.apache.arrow.stream"},
            )
        except httpx.TransportError:
            return False
        assert answer.status_code < 500 or answer.status_code == 503, answer.text
        assert answer.status_code in {201, 429, 503}, answer.text
        return answer.status_code == 201

    @contextmanager
    def flow(self, window: int) -> Iterator[None]:
        """Append records of a window, some every moment, as long as the block lasts."""
        over = threading.Event()

        def append() -> None:
            while not over.wait(0.3):
                self.send(window, 10)

        thread = threading.Thread(target=append)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def is_right(self) -> bool:
        """Return whether every window of both queries is what the records make it."""
        return all(self.found(name) == self.expected(name) for name in ("piers", "coast"))

    def expected(self, query: str) -> dict[tuple[str, Any], Any]:
        """Return values by start of the window and key, computed here."""
        groups: dict[tuple[str, Any], list[dict[str, Any]]] = defaultdict(list)
        for row in list(self.records):
            start = row["read_at"].replace(
                minute=row["read_at"].minute // 10 * 10, second=0, microsecond=0
            )
            key = row["pier"] if query.startswith("piers") else ""
            groups[start.isoformat(), key].append(row)
        return {place: _values(query, rows) for place, rows in groups.items()}

    def found(self, query: str) -> dict[tuple[str, Any], Any]:
        """Return the windows of a query as the API has them; none where it does not answer."""
        try:
            answer = self.api.get(f"/queries/{query}/results", params={"limit": 1000})
        except httpx.TransportError:
            return {}
        if not answer.is_success:
            return {}
        return {
            (datetime.fromisoformat(row["window_start"]).isoformat(),
             row["key"].get("pier", "")): _plain(row["values"])
            for row in answer.json()["windows"]
        }  # fmt: skip

    def health(self) -> dict[str, Any]:
        """Return the cluster's health, empty where the web does not answer."""
        return self.get("/health")

    def get(self, path: str) -> dict[str, Any]:
        """Return what the API answers about the cluster, empty where it does not answer."""
        try:
            answer = self.api.get(path)
        except httpx.TransportError:
            return {}
        body: dict[str, Any] = answer.json() if answer.is_success else {}
        return body

    def state(self) -> str:
        """Return the cluster's state."""
        return str(self.health().get("state", ""))

    def page(self) -> str:
        """Return the text of the cluster's page, as an administrator sees it."""
        page = self.browser.get(f"/clusters/{CLUSTER}/")
        if "csrfmiddlewaretoken" in page.text and "id_password" in page.text:
            token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[0]
            name, password = _LOGIN
            form = {"username": name, "password": password, "csrfmiddlewaretoken": token}
            page = self.browser.post(str(page.url), data=form, headers={"Referer": str(page.url)})
        return page.text if page.is_success else ""

    def jvm(self) -> psutil.Process | None:
        """Return the driver's JVM, None while there is none."""
        return next((one for one in psutil.process_iter() if self._is_jvm(one)), None)

    def _is_jvm(self, process: psutil.Process) -> bool:
        try:
            mine = process.environ().get("WEIR_RUN") == str(self.weir.data)
            return mine and "WEIR_DRIVER" in process.environ() and process.name() == "java"
        except psutil.Error:
            return False

    def wait(self, reached: Callable[[], Any], patience_s: float = PATIENCE_S) -> float:
        """Wait until something is reached; return how many seconds that took."""
        begun = time.monotonic()
        while not reached():
            waited = time.monotonic() - begun
            assert waited < patience_s, f"{self.health()}\n{self.weir.said()[-3000:]}"
            time.sleep(0.2)
        return time.monotonic() - begun


def _values(query: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    if query.startswith("coast"):
        return {"n": len(rows), "piers": len({row["pier"] for row in rows} - {None})}
    return {
        "n": len(rows),
        "tolls": sum((row["toll"] for row in rows), Decimal()),
        "high": max(row["level"] for row in rows),
    }


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: Decimal(value) if name == "tolls" else value for name, value in values.items()}


class Disk:
    """A file system in memory whose room a test decides."""

    def __init__(self, path: Path, megabytes: int) -> None:
        self.path, self._megabytes = path, megabytes
        path.mkdir()
        _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "weir-test", str(path))

    @contextmanager
    def full(self) -> Iterator[None]:
        """Leave no room in the block."""
        used = os.statvfs(self.path)
        blocks = used.f_blocks - used.f_bfree
        _run("mount", "-o", f"remount,size={blocks * used.f_frsize}", str(self.path))
        try:
            yield
        finally:
            _run("mount", "-o", f"remount,size={self._megabytes}m", str(self.path))

    def end(self) -> None:
        """Unmount it."""
        _run("umount", "--lazy", str(self.path))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
