"""Results and the change feed with the fraction kept, and estimates of counts and sums."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.catalog.computations import text_of
from controlplane.cli.main import main
from controlplane.models import Cluster, CountedRange, EdgePeriod, Query
from controlplane.query_spec import QuerySpec
from controlplane.results.estimates import scaled_count
from controlplane.results.feed import event_row, feed_events, feed_start
from controlplane.results.sampled import with_estimates
from controlplane.results.values import KeyedWindow, Names
from controlplane.topology import queries
from controlplane.wire.query_text import QueryText
from controlplane.wire.routing.drop_rules import INPUT
from tests.support.windows import write_windows

pytestmark = pytest.mark.django_db(transaction=True)
RESULTS = "/api/v1/clusters/sf/queries/q/results"


@pytest.fixture
def script(operator: Actor) -> Client:
    """A client with a token."""
    token = tokens.create(operator.user, "test")  # type: ignore[arg-type]
    return Client(headers={"authorization": f"Bearer {token}"})


@pytest.fixture
def query(operator: Actor, sf: Cluster) -> Query:
    """A query with windows of a minute, half of the records of the second one kept."""
    text = QueryText(
        {"n": "count(*)", "total": "sum(speed)", "top": "max(speed)"}, 60.0, key=("stream",)
    )
    query = queries.submit(operator, sf, QuerySpec("q", ("s0",), text))
    stream = query.streams.get()
    CountedRange.objects.create(stream=stream, start_s=0, stop_s=120)
    for start_s, lost in ((0, 0), (50, 0), (60, 70), (110, 30)):
        EdgePeriod.objects.create(
            stream=stream, query=INPUT, start_s=start_s, seconds=10, arrived=100, dropped=lost,
            counted_at=timezone.now(),
        )  # fmt: skip
    return query


def write(query: Query, batch: int = 3) -> None:
    s0 = query.streams.get().pk
    row = {"stream": s0, "k0": s0, "s0": 100, "s1": 100, "s2": 400, "s3": 9}
    write_windows(query, batch, [row | {"pane": 0}, row | {"pane": 60_000}])


def test_results_have_the_fraction_kept_and_estimates(script: Client, query: Query) -> None:
    write(query)
    second, first = script.get(RESULTS).json()["windows"]
    assert (first["kept"], first["estimates"]) == (1.0, {})
    assert second["kept"] == 0.5
    assert second["values"]["n"] == 100, "values are those of the kept records"
    value, low, high = scaled_count(100, 0.5)
    assert second["estimates"] == {
        "n": {"value": 200.0, "low": pytest.approx(low), "high": pytest.approx(high)},
        "total": {"value": 2 * second["values"]["total"], "low": None, "high": None},
    }
    assert value == 200


def test_a_fraction_that_was_not_counted_is_null(script: Client, query: Query) -> None:
    write(query)
    stream = query.streams.get()
    EdgePeriod.objects.create(
        stream=stream, query=-1, start_s=0, seconds=10, dropped=5, counted_at=timezone.now()
    )
    second, first = script.get(RESULTS).json()["windows"]
    assert (first["kept"], first["estimates"]) == (None, {})
    assert second["kept"] == 0.5


def test_the_fraction_is_known_without_the_functions_of_the_query(
    sf: Cluster, query: Query
) -> None:
    """Archived windows are shown although nothing more can be computed."""
    text = replace(text_of(query), aggregates={"n": "gone_by_now(speed)"})
    start = datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    window = KeyedWindow(start, {}, {"n": 3}, 1)
    (sampled,) = with_estimates(query, Names(text, None, {}), [window])
    assert sampled == window._replace(kept=0.5)


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
