"""Data that Weir has never seen, through command, API and page, in the second demonstration."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.data_sets import DataSet, data_sets, is_same
from tests.support.running_weir import RunningWeir

pytestmark = [
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.nightly("overload"),
]

CLUSTER: Final = "web"
API: Final = f"/api/v1/clusters/{CLUSTER}"
PATIENCE_S: Final = 90.0


@pytest.fixture(scope="module")
def weir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeir]:
    """Weir with the demonstration `web` alone."""
    running = RunningWeir(tmp_path_factory.mktemp("weir") / "data", {"WEIR_DEMO": CLUSTER})
    running.start()
    yield running
    running.end()


@pytest.fixture(scope="module")
def sets() -> dict[str, DataSet]:
    return {one.name: one for one in data_sets()}


def test_the_second_demonstration_computes(page: Page) -> None:
    """Text keys, one of them skewed over two tasks and merged."""
    until(page, lambda: rows(page, "web-by-url"))
    for name in ("web-status", "web-images-and-shuttle", "web-day"):
        until(page, lambda name=name: rows(page, name))
    found = rows(page, "web-by-url")
    assert all(row["key"]["url"].startswith("/") for row in found)
    page.goto(f"/clusters/{CLUSTER}/queries/?q=web-top-urls")
    page.click("table a:has-text('web-top-urls')")
    expect(page.locator("#results tbody tr").first).to_be_visible()


def test_packets_by_api_and_csv(page: Page, sets: dict[str, DataSet]) -> None:
    packets = sets["packets"]
    declare(page, packets)
    submit(page, packets.bodies())
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(packets.records, sink)
    append(page, packets, "text/csv", sink.getvalue().to_pybytes())
    compare(page, packets)


def test_words_by_command_and_arrow(
    weir: RunningWeir, page: Page, sets: dict[str, DataSet]
) -> None:
    words = sets["words"]
    folder = Path(weir.data).parent
    (folder / "words.json").write_text(json.dumps(words.schema))
    (folder / "queries.json").write_text(json.dumps({"queries": words.bodies()}))
    command(weir, "streams", "declare", CLUSTER, "words", "--schema", str(folder / "words.json"),
            "--apply")  # fmt: skip
    command(weir, "queries", "submit", CLUSTER, "--input", str(folder / "queries.json"))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, words.records.schema) as stream:
        stream.write_table(words.records)
    append(page, words, "application/vnd.apache.arrow.stream", sink.getvalue().to_pybytes())
    compare(page, words)


def test_requests_by_page_and_parquet(page: Page, sets: dict[str, DataSet]) -> None:
    requests = sets["requests"]
    declare(page, requests)
    first, *others = requests.bodies()
    submit_by_page(page, first)
    submit(page, others)
    sink = pa.BufferOutputStream()
    pq.write_table(requests.records, sink)
    append(page, requests, "application/vnd.apache.parquet", sink.getvalue().to_pybytes())
    compare(page, requests)


def declare(page: Page, one: DataSet) -> None:
    post(page, "streams", {"streams": [{"name": one.name, "schema": one.schema}]})


def submit_by_page(page: Page, body: dict[str, Any]) -> None:
    page.goto(f"/clusters/{CLUSTER}/queries/new/")
    page.fill("#name", body["name"])
    page.fill("#streams", "\n".join(body["streams"]))
    page.fill("#key", ", ".join(body["text"].get("key", ())))
    page.fill("#window", str(body["text"]["window_s"]))
    aggregates = body["text"]["aggregates"].items()
    page.fill("#aggregates", "\n".join(f"{name} = {one}" for name, one in aggregates))
    page.click("button:has-text('Submit query')")
    page.wait_for_url(re.compile(r"/queries/\d+/"))


def submit(page: Page, bodies: Sequence[dict[str, Any]]) -> None:
    post(page, "queries/bulk", {"queries": list(bodies)})


def append(page: Page, one: DataSet, content_type: str, body: bytes) -> None:
    """Append the records once all queries are placed: a query reads what comes after it."""
    until(page, lambda: all(query(page, name)["state"] == "running" for name in one.queries))
    placed = read(page, "")["routing_version"]
    until(page, lambda: read(page, "")["applied_version"] >= placed)
    answer = page.request.post(
        f"{API}/streams/{one.name}/records",
        data=body,
        headers={**token(page), "Content-Type": content_type},
    )
    assert answer.status == 201, answer.text()
    assert answer.json()["records"] == one.records.num_rows


def compare(page: Page, one: DataSet) -> None:
    """Compare every window of every query with what DuckDB computes of the same records."""
    for name in one.queries:
        wanted = one.expected(name)
        left = partial(differences, page, name, wanted)
        until(page, lambda left=left: not left(), lambda name=name, left=left: (name, left()[:5]))


def differences(page: Page, name: str, wanted: dict[tuple[Any, ...], dict[str, Any]]) -> list[Any]:
    found = {}
    for row in rows(page, name):
        start = datetime.fromisoformat(row["window_start"]).astimezone(UTC)
        found[round(start.timestamp() * 1000), *row["key"].values()] = row["values"]
    plain = {tuple(map(_plain, place)): values for place, values in wanted.items()}
    return [
        (place, found.get(place), plain.get(place))
        for place in found.keys() | plain.keys()
        if place not in found or place not in plain or not _equal(found[place], plain[place])
    ]


def _equal(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(is_same(found[name], value) for name, value in wanted.items())


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | str | None) else value.isoformat()


def rows(page: Page, name: str) -> list[dict[str, Any]]:
    """Return all windows of a query, page by page."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        body = read(page, f"queries/{name}/results?limit=1000{cursor}")
        found += body["windows"]
        if body["next"] is None:
            return found
        cursor = f"&cursor={body['next']}"


def query(page: Page, name: str) -> Any:
    return read(page, f"queries/{name}")


def read(page: Page, path: str) -> Any:
    answer = page.request.get(f"{API}/{path}".rstrip("/"))
    assert answer.ok, answer.text()
    return answer.json()


def post(page: Page, path: str, body: dict[str, Any]) -> None:
    answer = page.request.post(f"{API}/{path}", data=body, headers=token(page))
    assert answer.ok, answer.text()


def token(page: Page) -> dict[str, str]:
    if page.url == "about:blank":
        page.goto("/")
    cookies = {one.get("name"): one.get("value", "") for one in page.context.cookies()}
    return {"X-CSRFToken": cookies["csrftoken"]}


def until(page: Page, reached: Any, told: Any = lambda: "not in time") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, told()
        page.wait_for_timeout(300)


def command(weir: RunningWeir, *words: str) -> None:
    """Run the command `weir` as the demo's operator."""
    environment = {**os.environ, **weir.environment, "REDIS_URL": weir.redis_url()}
    done = subprocess.run(
        [sys.executable, "-m", "controlplane.cli.main", *words, "--as", weir.login()[0]],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
