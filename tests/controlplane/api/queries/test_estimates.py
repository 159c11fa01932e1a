"""Results and the change feed with the fraction kept, and estimates of counts and sums."""

import json
from dataclasses import replace

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.catalog.computations import text_of
from controlplane.cli.main import main
from controlplane.connections import redis_client
from controlplane.models import Cluster, EdgePeriod, Query
from controlplane.queries.spec import QuerySpec
from controlplane.results.estimates import scaled_count
from controlplane.results.feed import event_row, feed_events, feed_start
from controlplane.results.filters import WindowState
from controlplane.results.finality import update_finality
from controlplane.results.values import RawWindow, ResultColumns
from controlplane.topology import queries
from controlplane.wire.aggregates.sampling import Sampled
from controlplane.wire.drop_counts import OTHERS
from controlplane.wire.query_text import QueryText
from controlplane.wire.results import watermarks
from controlplane.wire.results.places import start_bytes
from controlplane.wire.routing.drop_rules import INPUT
from tests.support.windows import write_windows

pytestmark = pytest.mark.django_db(transaction=True)
RESULTS = "/api/v1/clusters/sf/queries/q/results"


@pytest.fixture
def query(operator: Actor, sf: Cluster) -> Query:
    """A query with windows of a minute, half of the records of the second one kept."""
    text = QueryText(
        {"n": "count(*)", "total": "sum(speed)", "top": "max(speed)"}, 60.0, key=("stream",)
    )
    return queries.submit(operator, sf, QuerySpec("q", ("s0",), text))


def write(query: Query, batch: int = 3) -> None:
    s0 = query.streams.get().pk
    row = {"stream": s0, "k0": s0, "s0": 100, "s1": 100, "s2": 400, "s3": 9}
    write_windows(query, batch, [row | {"pane": 0}, row | {"pane": 60_000, "kept": 0.5}])


def test_results_have_the_fraction_kept_and_estimates(script: Client, query: Query) -> None:
    write(query)
    second, first = script.get(RESULTS).json()["windows"]
    assert (first["kept"], first["estimates"]) == (1.0, {})
    assert second["kept"] == 0.5
    assert second["values"]["n"] == 100, "values are those of the kept records"
    value, low, high = scaled_count(100, Sampled(100, 100, 200))
    assert second["estimates"] == {
        "n": {"value": 200.0, "low": pytest.approx(low), "high": pytest.approx(high)},
        "total": {"value": 2 * second["values"]["total"], "low": None, "high": None},
    }
    assert value == 200


@pytest.mark.parametrize(
    ("drop", "kept"),
    [
        ({"query": OTHERS}, [None, None]),
        ({"query": INPUT, "window_ms": 5_000, "slide_ms": 5_000}, [None, None]),
        ({"query": INPUT, "slide_ms": 1}, [None, None]),
        ({"query": INPUT}, [None, 0.5]),
        ({"query": INPUT, "window_ms": 60_000, "slide_ms": 60_000}, [1.0, 0.5]),
    ],
)
def test_what_no_record_stands_for_is_unknown(
    script: Client, query: Query, drop: dict[str, int], kept: list[float | None]
) -> None:
    """Edges without counts of their own, other windows, every record; and a sample without any."""
    write(query)
    EdgePeriod.objects.create(
        stream=query.streams.get(), start_s=0, seconds=120, dropped=5, counted_at=timezone.now(),
        **drop,
    )  # fmt: skip
    second, first = script.get(RESULTS).json()["windows"]
    assert [first["kept"], second["kept"]] == kept
    assert first["estimates"] == {}
    assert bool(second["estimates"]) == (kept[1] is not None)


def test_the_fraction_is_known_without_the_functions_of_the_query(query: Query) -> None:
    """Windows are shown although nothing more can be computed."""
    text = replace(text_of(query), aggregates={"n": "gone_by_now(speed)"}, key=())
    sample = Sampled(3, 3, 6)
    raw = RawWindow(start_bytes(60_000), [], [3], 1, WindowState.OPEN, sampled=sample)
    window = ResultColumns(text, None, {}).shown(raw)
    assert (window.kept, window.values, window.estimates) == (0.5, {"n": 3}, {})


def test_final_windows_have_estimates(script: Client, query: Query) -> None:
    write(query)
    shown = script.get(RESULTS).json()["windows"]
    times = {query.streams.get().pk: 600_000}
    watermarks.commit(redis_client(), "sf", 4, 4_000, 0, times)
    assert update_finality(timezone.now()) == 1
    final = script.get(RESULTS).json()["windows"]
    assert [(row["kept"], row["estimates"]) for row in final] == [
        (row["kept"], row["estimates"]) for row in shown
    ]
    assert [row["state"] for row in final] == ["final", "final"]


def test_the_change_feed_has_estimates(sf: Cluster, query: Query) -> None:
    place = feed_start(sf, query)
    write(query)
    events, _ = feed_events(sf, query, place)
    rows = {row["window_start"].minute: row for row in map(event_row, events)}
    assert (rows[0]["kept"], rows[0]["estimates"]) == (1.0, {})
    assert rows[1]["kept"] == 0.5
    assert rows[1]["estimates"]["n"]["value"] == 200.0


def test_a_tail_prints_estimates(
    operator: Actor, sf: Cluster, query: Query, capsys: pytest.CaptureFixture[str]
) -> None:
    place = feed_start(sf, query)
    write(query)
    call = ["tail", "sf", "q", "--for", "0", "--after", str(place), "--as", operator.name]
    assert main([*call, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["kept"] for line in lines] == [1.0, 0.5]
    assert lines[1]["estimates"]["n"]["value"] == 200.0
    assert main(call) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "kept" not in first
    assert second.endswith("kept 0.5  n≈200 (174.136 to 229.705)  total≈800")
