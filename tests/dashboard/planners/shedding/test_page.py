"""The page of load shedding: states, parts, charts, arming, weights, drills, by role."""

import csv
import json
from datetime import datetime, timedelta

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import (
    ArmedLadder,
    Cluster,
    DisarmedLadder,
    Query,
    SeriesPeriod,
    SheddingInterval,
)
from controlplane.planners.shedding.arming import arm, disarm
from controlplane.planners.shedding.report import ladder_report
from tests.support import cluster as made
from tests.support.series import change_newest
from tests.support.shedding import busy_cluster

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
PAGE = "/clusters/sf/shedding/"


@pytest.fixture
def busy(operator: Actor, now: datetime) -> Cluster:
    """Streams of 300, 100 and 200 records/s, queries with weights and a floor, measured costs."""
    return busy_cluster(operator, made.small_cluster(operator), now)


def test_a_cluster_without_measurements_is_explained(operator: Actor, operating: Client) -> None:
    cluster = made.small_cluster(operator)
    content = operating.get(PAGE).content.decode()
    assert 'data-reason="no_query"' in content
    assert "No query runs" in content
    made.placed(operator, cluster, {"q": ["s0"]})
    content = operating.get(PAGE).content.decode()
    assert 'data-reason="no_costs"' in content
    assert "node 0" in content
    assert 'id="shedding-tiles"' not in content


def test_a_ladder_of_many_queries_is_armed_without_a_preview(
    operating: Client, busy: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controlplane.planners.shedding.report.MOST_PREVIEWED", 1)
    content = operating.get(PAGE).content.decode()
    assert 'data-reason="not_computed"' in content
    assert 'popovertarget="arm"' in content
    assert 'id="arm"' in content
    assert 'form="request-plan"' in content
    assert 'id="request-plan"' in content
    assert "· 0 queries" not in content


def test_the_page_before_arming(operating: Client, busy: Cluster) -> None:
    answer = operating.get(PAGE)
    content = answer.content.decode()
    for part in ("finding", "tiles", "rungs", "kept", "costs", "history"):
        assert f'id="shedding-{part}"' in content
    assert answer.context["status"].what.startswith("Not enabled: the input is at")
    # Samples of equal numbers of records have no slope, but the nodes are busy for half their time.
    assert content.count('data-source="busy"') == len(answer.context["report"].nodes) > 0
    assert 'popovertarget="arm"' in content
    assert 'popovertarget="disarm"' not in content
    # Cells of the heat map: a query keeps less on a higher rung.
    levels = {query.name: [level for _, level in cells] for query, _, cells, _ in
              answer.context["queries"]}  # fmt: skip
    assert levels["low"][0] == 0 < levels["low"][-1]
    assert f'href="{PAGE}"' in operating.get("/clusters/sf/").content.decode()


def test_the_active_rung_and_what_is_kept(
    operator: Actor, operating: Client, busy: Cluster
) -> None:
    arm(operator, busy, "needed")
    assert "reported no drop level yet" in operating.get(PAGE).content.decode()
    change_newest(busy, ladder_position=0.0)
    assert "Enabled, nothing is dropped" in operating.get(PAGE).content.decode()
    change_newest(busy, ladder_position=0.5)
    answer = operating.get(PAGE + "live/", headers=HTMX | {"HX-Target": "shedding-status"})
    assert answer.context["status"].what.startswith("Drop level 1 of")
    content = answer.content.decode()
    assert content.count('hx-swap-oob="true"') == 3
    assert [row.report.number for row in answer.context["rungs"] if row.report.is_active] == [1]
    kept = {query.name: (now, query.kept) for query, now, _, _ in answer.context["queries"]}
    now, (whole, first, *_) = kept["low"]
    assert first < now < whole, "halfway between drop level 0 and drop level 1"


def test_the_page_is_loaded_again_when_a_ladder_is_possible(
    operating: Client, busy: Cluster
) -> None:
    headers = HTMX | {"HX-Target": "shedding-empty"}
    assert operating.get(PAGE + "live/", headers=headers)["HX-Refresh"] == "true"
    # Without one, the page has none of the parts.
    Query.objects.all().delete()
    assert operating.get(PAGE + "live/", headers=headers).content == b""


def test_an_operator_arms_and_disarms(operating: Client, busy: Cluster) -> None:
    answer = operating.post(PAGE + "arm/", {"reason": ""}, headers=HTMX)
    assert (answer.status_code, "Give a reason" in answer.content.decode()) == (422, True)
    answer = operating.post(PAGE + "arm/", {"reason": "sale"}, headers=HTMX)
    assert answer["HX-Redirect"] == PAGE
    assert ArmedLadder.objects.get(cluster=busy).reason == "sale"
    content = operating.get(PAGE).content.decode()
    assert "sale" in content
    assert 'popovertarget="disarm"' in content
    assert operating.post(PAGE + "disarm/", {"reason": "over"}).status_code == 302
    assert not ArmedLadder.objects.exists()
    answer = operating.post(PAGE + "disarm/", {"reason": "over"}, headers=HTMX)
    assert "No shedding plan is enabled" in answer.content.decode()


def test_a_ladder_is_disarmed_for_an_hour(
    operator: Actor, operating: Client, busy: Cluster
) -> None:
    arm(operator, busy, "needed")
    values = {"reason": "a test", "minutes": "60"}
    wrong = operating.post(PAGE + "disarm/", values | {"minutes": "soon"}, headers=HTMX)
    assert (wrong.status_code, "Enter a whole number" in wrong.content.decode()) == (422, True)
    assert 'value="480"' in wrong.content.decode()
    assert operating.post(PAGE + "disarm/", values, headers=HTMX)["HX-Redirect"] == PAGE
    row = DisarmedLadder.objects.get(cluster=busy)
    content = operating.get(PAGE).content.decode()
    assert "a-operator disabled the shedding plan until" in content
    assert 'popovertarget="disarm"' in content
    operating.post(PAGE + "disarm/", {"reason": "never", "minutes": "0"})
    assert not DisarmedLadder.objects.filter(pk=row.pk).exists()
    assert 'popovertarget="disarm"' not in operating.get(PAGE).content.decode()


def test_a_ladder_that_is_armed_again_later_is_named_without_measurements(
    operator: Actor, operating: Client, busy: Cluster
) -> None:
    arm(operator, busy, "needed")
    disarm(operator, busy, "a test", 60)
    SeriesPeriod.objects.filter(seconds=1).delete()
    content = operating.get(PAGE).content.decode()
    assert 'data-reason="no_costs"' in content
    assert "a-operator disabled the shedding plan until" in content
    assert 'popovertarget="disarm"' in content
    assert 'id="disarm"' in content


def test_weights_and_floors_are_edited_together(operating: Client, busy: Cluster) -> None:
    ids = dict(Query.objects.values_list("name", "pk"))
    values = {f"weight-{ids['low']}": "2.5", f"floor-{ids['low']}": "40"}
    wrong = values | {f"floor-{ids['both']}": "140", f"weight-{ids['both']}": "many"}
    answer = operating.post(PAGE + "weights/", wrong, headers=HTMX)
    assert (answer.status_code, "many is not a number" in answer.content.decode()) == (422, True)
    assert 'value="140"' in answer.content.decode()
    answer = operating.post(
        PAGE + "weights/", values | {f"floor-{ids['both']}": "140"}, headers=HTMX
    )
    assert "Must be 0 to 1" in answer.content.decode()
    # All or none.
    assert Query.objects.get(name="low").shedding_weight == 0.1
    answer = operating.post(PAGE + "weights/", values | {"reason": "revenue"}, headers=HTMX)
    assert answer["HX-Redirect"] == PAGE
    low, both = Query.objects.get(name="low"), Query.objects.get(name="both")
    assert (low.shedding_weight, low.shedding_floor) == (2.5, 0.4)
    assert (both.shedding_weight, both.shedding_floor) == (1.0, 0.0)


def test_a_drill_of_a_range(operating: Client, busy: Cluster, now: datetime) -> None:
    start, stop = (f"{now - timedelta(minutes=m):%Y-%m-%dT%H:%M}" for m in (20, 1))
    answer = operating.get(PAGE, {"from": start, "to": stop})
    assert answer.context["drill"].above_s == 0
    content = answer.content.decode()
    assert f"charts.json?from={start.replace(':', '%3A')}&amp;to=" in content
    figures = json.loads(
        operating.get(PAGE + "charts.json", {"from": start, "to": stop}).content
    )["figures"]  # fmt: skip
    assert set(figures) == {"feasible", "drill"}
    kept, arriving, _ = figures["drill"]["data"]
    assert kept["y"] == arriving["y"]
    old = {"from": "2026-01-01T00:00", "to": "2026-01-02T00:00"}
    assert "There is no drill" in operating.get(PAGE, old).content.decode()
    assert "Enter two times" in operating.get(
        PAGE, {"from": "yesterday", "to": "today"}
    ).content.decode()  # fmt: skip


def test_feasible_inputs_have_a_border_and_rungs_beyond(operating: Client, busy: Cluster) -> None:
    figure = json.loads(operating.get(PAGE + "charts.json").content)["figures"]["feasible"]
    cells, border, *_, largest, present = figure["data"]
    assert (present["x"], present["y"]) == ([300.0], [200.0])
    # The rates were the same all the time: the largest input has no label of its own.
    assert (largest["x"], largest["y"]) == (present["x"], present["y"])
    assert [note["text"][:3] for note in figure["layout"]["annotations"]] == ["now"]
    assert cells["z"][0][0] == 0
    assert cells["z"][-1][-1] > 0
    # Cells within the border need no rung, cells beyond it do.
    heights = dict(zip(border["x"], border["y"], strict=True))
    for row, y in zip(cells["z"], cells["y"], strict=True):
        for rung, x in zip(row, cells["x"], strict=True):
            near = min(heights, key=lambda place: abs(place - x))
            if y < 0.9 * heights[near] and x < 0.9 * max(heights):
                assert rung == 0
            if y > 1.1 * heights[near] or x > 1.1 * max(heights):
                assert rung > 0


def test_the_history_names_what_was_dropped(
    operating: Client, busy: Cluster, now: datetime
) -> None:
    stream, query = busy.streams.get(name="s0"), Query.objects.get(name="low")
    SheddingInterval.objects.create(
        cluster=busy, rung=1, position=0.7, started_at=now - timedelta(hours=2),
        ended_at=now - timedelta(hours=1), read=1000, dropped=90,
        by_edge=[[stream.pk, query.pk, 60], [stream.pk, 0, 30]], by_stream=[[stream.pk, 1000]],
    )  # fmt: skip
    Query.objects.update(placed_at=now - timedelta(hours=3))
    answer = operating.get(PAGE + "history/", headers=HTMX)
    content = answer.content.decode()
    assert "s0 for low 60" in content
    assert "input of s0 30" in content
    (shown,) = answer.context["history"]
    assert {query.name: query.kept for query in shown["queries"]} == {"low": 0.91, "high": 0.97}
    assert "and 1 further query" in content
    assert "30 of 1,000 dropped" in content
    assert shown["episode"].is_over


def test_a_rung_is_activated_and_released(
    operator: Actor, operating: Client, busy: Cluster
) -> None:
    arm(operator, busy, "needed")
    assert 'popovertarget="activate-1"' in operating.get(PAGE).content.decode()
    values = {"rung": "1", "minutes": "15", "reason": ""}
    answer = operating.post(PAGE + "activate/", values, headers=HTMX)
    assert (answer.status_code, "Give a reason" in answer.content.decode()) == (422, True)
    answer = operating.post(PAGE + "activate/", values | {"reason": "a test"}, headers=HTMX)
    assert answer["HX-Redirect"] == PAGE
    content = operating.get(PAGE).content.decode()
    assert "a-operator activated drop level 1 until" in content
    assert "Release drop level 1" in content
    operating.post(PAGE + "release/")
    assert ArmedLadder.objects.get(cluster=busy).value.least == 0.0


def test_the_ladder_is_a_csv_file(operating: Client, busy: Cluster) -> None:
    report = ladder_report(busy)
    content = operating.get(PAGE).content.decode()
    assert f'href="{PAGE}ladder.csv"' in content
    answer = operating.get(PAGE + "ladder.csv")
    assert answer["Content-Disposition"] == 'attachment; filename="sf-ladder.csv"'
    rows = list(csv.DictReader(answer.content.decode().splitlines()))
    assert [int(row["rung"]) for row in rows] == [rung.number for rung in report.rungs]
    assert [float(row["quality_lost"]) for row in rows] == pytest.approx(
        [rung.quality_lost for rung in report.rungs], abs=1e-6
    )
    assert rows[0]["dropped"] == ""
    assert "for low" in rows[-1]["dropped"]


def test_what_each_query_keeps_is_a_csv_file(operating: Client, busy: Cluster) -> None:
    Query.objects.filter(name="both").update(name="=both()")
    answer = operating.get(PAGE + "kept.csv")
    rows = {row["query"]: row for row in csv.DictReader(answer.content.decode().splitlines())}
    # A spreadsheet would read the name as a formula.
    assert set(rows) == {"low", "high", "'=both()"}
    for query in ladder_report(busy).queries:
        row = rows[query.name if query.name[0] != "=" else f"'{query.name}"]
        assert float(row["floor"]) == query.floor
        parts = [float(row[f"rung_{number}"]) for number in range(len(query.kept))]
        assert parts == pytest.approx(query.kept, abs=1e-6)


def test_without_a_ladder_there_is_no_file(operator: Actor, operating: Client) -> None:
    made.small_cluster(operator)
    assert operating.get(PAGE + "ladder.csv").status_code == 404


def test_a_query_names_its_weight_and_floor(operating: Client, busy: Cluster) -> None:
    query = Query.objects.get(name="high")
    content = operating.get(f"/clusters/sf/queries/{query.pk}/").content.decode()
    assert "keeps at least 50 %" in content
