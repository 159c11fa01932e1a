"""The first hour of a new cluster by its pages: create, declare from a sample, preview, follow.

The records are requests to two language models, which resemble no demonstration. Their producer is
a script that posts CSV; everything else is done on the pages.
"""

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.data_sets import DataSet, requests

pytestmark = [
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.nightly("overload"),
]

ROOT = Path(__file__).parents[2]
CLUSTER = "model-requests"
STREAM = "requests"
QUERY = "tokens-by-service"
TEXT = {
    "key": ["service"],
    "window_s": 60,
    "aggregates": {"requests": "count(*)", "tokens": "sum(prompt + answer)"},
}
# Records of the sample and the preview, and those that follow the query.
SAMPLED = 500
FOLLOWING = 3000
# A cluster starts in 20 to 40 s on a quiet machine.
START_MS = 240_000


def csv_of(records: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(records, sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def append(page: Page, records: pa.Table) -> None:
    """Append records as a producer does."""
    cookies = {one["name"]: one["value"] for one in page.context.cookies()}
    answer = page.request.post(
        f"/api/v1/clusters/{CLUSTER}/streams/{STREAM}/records",
        data=csv_of(records),
        headers={"X-CSRFToken": cookies["csrftoken"], "Content-Type": "text/csv"},
    )
    assert answer.status == 201, answer.text()


def of_query(records: pa.Table) -> DataSet:
    """Return records as the data set of the query alone."""
    return replace(requests(), records=records, queries={QUERY: TEXT})


def test_a_cluster_is_created_and_its_first_query_followed(admin: Page, tmp_path: Path) -> None:
    page, records = admin, requests().records
    sample = records.slice(0, SAMPLED)
    create_cluster(page)
    try:
        declare_stream(page, sample, tmp_path)
        append_the_sample(page)
        write_query(page)
        preview(page, of_query(sample))
        submit(page)
        following = records.slice(SAMPLED, FOLLOWING)
        append(page, following)
        follow(page, of_query(following))
    finally:
        stop_cluster(page)


def create_cluster(page: Page) -> None:
    page.goto("/")
    page.locator("body[data-ready]").wait_for(state="attached")
    page.get_by_role("button", name="Create…").click()
    dialog = page.locator("#create-cluster")
    dialog.get_by_label("Name", exact=True).fill("Model requests")
    dialog.get_by_label("Nodes").fill("2")
    dialog.get_by_role("button", name="Create cluster").click()
    page.wait_for_url(f"**/clusters/{CLUSTER}/")


def declare_stream(page: Page, sample: pa.Table, folder: Path) -> None:
    """Declare the stream by the columns that a sample proposes."""
    file = folder / "sample.csv"
    file.write_bytes(csv_of(sample))
    page.locator(f'.nav a[href="/clusters/{CLUSTER}/streams/"]').click()
    page.get_by_role("link", name=re.compile("Declare")).first.click()
    page.locator("#sample").set_input_files(file)
    form = page.locator("form", has=page.locator("#sample"))
    form.get_by_role("button", name="Propose columns").click()
    expect(page.locator("#event_time option:checked")).to_have_text("asked_at")
    expect(page.locator("#stream")).to_have_value("sample")
    page.locator("#stream").fill(STREAM)
    page.get_by_role("button", name="Declare the stream").click()
    page.wait_for_url("**/streams/*/")
    expect(page.get_by_role("heading", level=1)).to_have_text(STREAM)


def append_the_sample(page: Page) -> None:
    page.get_by_role("button", name="Append the sample").click()
    expect(page.locator(".message").first).to_contain_text(f"{SAMPLED} records appended")


def write_query(page: Page) -> None:
    """Write the query with completion, from the page of the stream."""
    page.get_by_role("link", name="New query").click()
    page.locator("body[data-ready]").wait_for(state="attached")
    expect(page.locator("#streams")).to_have_value(STREAM)
    page.get_by_label("Name", exact=True).fill(QUERY)
    page.locator("#key").fill("serv")
    page.get_by_role("option", name="service").click()
    page.locator("#aggregates").fill("requests = count(*)\ntokens = sum(prompt + anser)")
    expect(page.locator("#faults-aggregates")).to_contain_text("anser")
    page.locator("#aggregates").fill("requests = count(*)\ntokens = sum(prompt + answer)")
    expect(page.locator("#outcome li")).to_have_count(3)


def preview(page: Page, given: DataSet) -> None:
    """The preview has the windows of the records in the log; nothing is placed by it."""
    page.get_by_role("button", name="Preview", exact=True).click()
    rows = page.locator("#preview tbody tr")
    expect(rows.first).to_be_visible(timeout=60_000)
    expect_windows(page, "#preview", given)
    page.get_by_role("button", name="Explain").click()
    expect(page.locator("#explanation")).to_contain_text("Expected state")


def submit(page: Page) -> None:
    page.get_by_role("button", name="Submit query").click()
    page.wait_for_url(re.compile(r"/queries/\d+/"))
    expect(page.locator("#facts dd").first).to_have_text("running", timeout=START_MS)
    expect(page.locator("#connection")).to_contain_text("live", timeout=START_MS)
    deadline = time.monotonic() + START_MS / 1000
    while (cluster := read(page))["applied_version"] < cluster["routing_version"]:
        assert time.monotonic() < deadline, cluster
        page.wait_for_timeout(500)


def read(page: Page) -> Any:
    """Return the cluster as the API has it."""
    answer = page.request.get(f"/api/v1/clusters/{CLUSTER}")
    assert answer.ok, answer.text()
    return answer.json()


def follow(page: Page, given: DataSet) -> None:
    """The open page of the query shows every window without a reload."""
    page.evaluate("window.same = true")
    expect_windows(page, "#results", given)
    assert page.evaluate("window.same"), "the page was loaded again"


def expect_windows(page: Page, place: str, given: DataSet) -> None:
    """Wait until a table has the values of the newest window as DuckDB computes them."""
    windows = given.expected(QUERY)
    newest = max(start for start, _ in windows)
    for (start, service), values in windows.items():
        if start != newest:
            continue
        row = page.locator(f"{place} tbody tr", has_text=service).first
        expect(row).to_contain_text(f"{values['requests']:,}", timeout=START_MS)
        expect(row).to_contain_text(f"{values['tokens']:,}", timeout=START_MS)


def stop_cluster(page: Page) -> None:
    page.goto(f"/clusters/{CLUSTER}/")
    page.locator("body[data-ready]").wait_for(state="attached")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("button", name="Stop…").click()
    dialog = page.locator("#stop-cluster")
    dialog.get_by_label("Reason").fill("the first hour is over")
    dialog.get_by_role("button", name="Stop the cluster").click()
    expect(page.locator(".message").first).to_be_visible()
