"""What rush hours and hot keys add to the records of a demonstration."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pyarrow as pa
import pytest

from workers.demo.keeper import WeirApi
from workers.demo.recording import Recording
from workers.demo.scenarios import Disturbance, Disturbances, DisturbedRecords
from workers.demo.taxis import Taxis

NOW = datetime(2026, 5, 1, tzinfo=UTC)
RECORDS = {
    "busy": pa.RecordBatch.from_pydict({"t": [1, 2, 2, 5], "meter": ["a", "b", "a", "c"]}),
    "other": pa.RecordBatch.from_pydict({"t": [3], "meter": ["d"]}),
}


def of(kind: str, factors: dict[str, float] | None = None) -> list[Disturbance]:
    return [Disturbance(kind, NOW, NOW + timedelta(minutes=10), factors or {})]


HOT = of("hot_key", {"busy": 2.25})
GROWN = NOW + timedelta(minutes=1)


def test_all_streams_rise_by_a_factor_in_order_of_time() -> None:
    result = DisturbedRecords("meter").of(RECORDS, of("rush_hour", {"*": 3.0}), NOW)
    assert result["busy"].column("t").to_pylist() == [1, 1, 1, 2, 2, 2, 2, 2, 2, 5, 5, 5]
    assert result["other"].num_rows == 3
    assert DisturbedRecords("meter").of(RECORDS, [], NOW) == RECORDS


def test_a_stream_grows_for_a_minute() -> None:
    grows, disturbed = of("growing_stream", {"busy": 5.0}), DisturbedRecords("meter")
    counts = [
        disturbed.of(RECORDS, grows, NOW + timedelta(seconds=seconds))["busy"].num_rows
        for seconds in (0, 30, 60, 90)
    ]
    assert counts == [4, 12, 20, 20]
    assert disturbed.of(RECORDS, grows, NOW)["other"].num_rows == 1


def test_further_records_of_a_stream_have_one_key_until_the_end() -> None:
    disturbed = DisturbedRecords("meter")
    assert disturbed.of(RECORDS, HOT, NOW) == RECORDS
    hot = disturbed.of(RECORDS, HOT, GROWN)
    keys: list[Any] = hot["busy"].column("meter").to_pylist()
    times: list[Any] = hot["busy"].column("t").to_pylist()
    assert len(keys) == 4 + 5
    assert keys.count("a") == 2 + 5
    assert times == sorted(times)
    assert hot["other"] == RECORDS["other"]
    later = {"busy": RECORDS["busy"].slice(1, 1), "other": RECORDS["other"]}
    grown = of("hot_key", {"busy": 3.0})
    assert disturbed.of(later, grown, GROWN)["busy"].column("meter").to_pylist() == ["b", "a", "a"]
    assert disturbed.of({"other": RECORDS["other"]}, HOT, GROWN) == {"other": RECORDS["other"]}
    assert disturbed.of({}, HOT, GROWN) == {}
    disturbed.of(RECORDS, [], GROWN)
    assert disturbed.of(later, grown, GROWN)["busy"].column("meter").to_pylist() == ["b"] * 3


def test_both_together_keep_the_columns(recording: Recording) -> None:
    taxis = Taxis(60.0, 0, recording)
    records = taxis.records_between(-1, 60_000)
    name = max(records, key=lambda name: records[name].num_rows)
    rows = [*of("hot_key", {name: 2.0}), *of("rush_hour", {"*": 3.0})]
    both = DisturbedRecords(taxis.key).of(records, rows, GROWN)
    assert {stream: batch.num_rows for stream, batch in both.items()} == {
        stream: batch.num_rows * (6 if stream == name else 3) for stream, batch in records.items()
    }
    assert {name: batch.schema for name, batch in both.items()} == {
        name: batch.schema for name, batch in records.items()
    }
    (query,) = taxis.queries_by_key()
    assert query.name.startswith(tuple(taxis.prefixes))
    assert query.body()["text"]["key"] == [taxis.key]


@pytest.mark.parametrize(("seconds", "kinds"), [(59, {"hot_key"}), (60, set())])
def test_a_scenario_ends_at_its_time_without_weir(seconds: int, kinds: set[str]) -> None:
    listed = Disturbances([Disturbance("hot_key", NOW, NOW + timedelta(minutes=1))])
    assert listed.kinds(NOW + timedelta(seconds=seconds)) == kinds


def test_scenarios_that_have_ended_are_not_listed() -> None:
    common = {
        "started_at": "2026-05-01T00:00:00Z", "ends_at": "2026-05-01T00:10:00Z",
        "factors": {"*": 3.0},
    }  # fmt: skip
    rows = [
        {"kind": "rush_hour", "ended_at": None, **common},
        {"kind": "hot_key", "ended_at": "2026-05-01T00:01:00Z", **common},
    ]
    answer = httpx.MockTransport(lambda _: httpx.Response(200, json={"scenarios": rows}))
    with httpx.Client(base_url="http://weir.test", transport=answer) as client:
        assert WeirApi(client, "sf").disturbances() == of("rush_hour", {"*": 3.0})
