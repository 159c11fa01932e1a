"""The requests of the recorded hours, in a loop, and the queries over them."""

import itertools
from pathlib import Path

import pyarrow.csv
import pytest

from benchmarks.demo_data.web import SOURCE, requests_of
from controlplane.wire.query_text import QueryText
from workers.demo.web.program import Web
from workers.demo.web.recording import SCHEMA, SPAN_MS, START_MS, TIME, load_recording

SHARED = Path(__file__).resolve().parents[5] / "shared" / "data"


@pytest.fixture(scope="module")
def web() -> Web:
    return Web(60.0)


def counted(web: Web, after: int, until: int) -> dict[str, int]:
    return {name: batch.num_rows for name, batch in web.records_between(after, until).items()}


@pytest.mark.nightly("lab")
def test_the_recording_is_what_the_source_data_gives() -> None:
    found = requests_of(pyarrow.csv.read_csv(SHARED / SOURCE))
    recording = load_recording()
    assert found.num_rows == len(recording.at) == 13_200
    assert found["url"].to_pylist() == recording.columns["url"].to_pylist()
    assert sum(one.requests for one in recording.directories) == 13_200


def test_a_loop_gives_every_request_once_however_it_is_cut(web: Web) -> None:
    edges = [-1, 59_999, 3_600_000, 3_600_000, 20_000_000, SPAN_MS - 1]
    whole = counted(web, -1, SPAN_MS - 1)
    pieces = [counted(web, *pair) for pair in itertools.pairwise(edges)]
    assert {name: sum(one.get(name, 0) for one in pieces) for name in whole} == whole
    assert sum(whole.values()) == 13_200


def test_event_time_grows_over_the_loops(web: Web) -> None:
    found = web.records_between(SPAN_MS - 60_000, SPAN_MS + 600_000)
    times = [ms.timestamp() for batch in found.values() for ms in batch[TIME].to_pylist() if ms]
    assert min(times) * 1000 >= START_MS + SPAN_MS - 60_000
    assert max(times) * 1000 >= START_MS + SPAN_MS
    assert all(batch.schema == SCHEMA for batch in found.values())


def test_its_queries_have_text_keys_one_of_them_skewed(web: Web) -> None:
    queries = {query.name: query for query in web.queries_at(0)}
    assert len(queries) >= 12
    assert queries["web-by-url"].key_grouping == "partial_key"
    assert all(name.startswith(web.prefixes[0]) for name in queries)
    # What the API gets is the text of a query.
    for query in queries.values():
        QueryText.from_json({**query.text, "right": []})
