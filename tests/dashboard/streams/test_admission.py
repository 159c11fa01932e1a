"""Outlook, characteristics, split nodes, redirections and what-if on the pages of streams."""

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Stream
from controlplane.topology.split_nodes import set_split_capacity
from dashboard.figures.stream import rate_figure
from dashboard.streams.admission import HourCell
from tests.support.admission import arrived

pytestmark = [pytest.mark.django_db, pytest.mark.nightly("pages")]
HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def stream(sf: Cluster) -> Stream:
    return sf.streams.get(name="s0")


def page_of(stream: Stream, part: str = "") -> str:
    return f"/clusters/sf/streams/{stream.pk}/{part}"


def test_characteristics_are_saved_and_removed(operating: Client, stream: Stream) -> None:
    """An empty field is not declared any more."""
    path = page_of(stream, "characteristics/")
    operating.post(path, {"average": "60", "peak": "90", "transition": "jump"})
    operating.post(path, {"average": "", "peak": "1,200", "reason": "a new season"})
    stream.refresh_from_db()
    assert stream.characteristics == {"peak": 1200.0}


@pytest.mark.parametrize(
    ("values", "field"),
    [({"average": "many"}, "average"), ({"minimum": "9", "maximum": "3"}, "minimum")],
)
def test_a_fault_is_shown_at_its_field_and_changes_nothing(
    operating: Client, stream: Stream, values: dict[str, str], field: str
) -> None:
    answer = operating.post(page_of(stream, "characteristics/"), values, **HTMX)  # type: ignore[arg-type]
    assert answer.status_code == 422
    rows = {row.item.name: row for row in answer.context["characteristics"]}
    assert [name for name, row in rows.items() if row.faults] == [field]
    assert rows[field].value == values[field]
    stream.refresh_from_db()
    assert stream.characteristics == {}


def test_measured_characteristics_are_declared_with_one_button(
    operating: Client, stream: Stream, sf: Cluster
) -> None:
    arrived(sf, timezone.now(), {"s0": [20.0, 40.0] * 30})
    operating.post(page_of(stream, "characteristics/"), {"measured": "1"})
    stream.refresh_from_db()
    assert stream.characteristics["average"] == pytest.approx(30)
    assert stream.characteristics["period_s"] == 20.0
    assert "rate" not in stream.characteristics


def test_a_stream_is_redirected_by_its_page(operating: Client, stream: Stream) -> None:
    target = 1 - stream.split
    operating.post(page_of(stream, "redirect/"), {"split": str(target), "reason": "load"})
    context = operating.get(page_of(stream)).context
    assert context["own_split"].index == target
    (row,) = context["redirections"]
    assert (row.target, row.reason) == (target, "load")


def test_the_capacity_of_split_nodes_is_declared(operating: Client, sf: Cluster) -> None:
    rows = "/clusters/sf/streams/split-nodes/"
    assert "Expected in the next" not in operating.get(rows).content.decode()
    operating.post("/clusters/sf/streams/split-capacity/", {"capacity": "2,500", "emulated": "1"})
    assert "Expected in the next" in operating.get(rows).content.decode()
    sf.refresh_from_db()
    assert (sf.split_capacity, sf.split_emulated) == (2500.0, True)
    rows = operating.get("/clusters/sf/streams/split-nodes/").context["split_nodes"]
    assert [item["row"].capacity for item in rows] == [2500.0] * sf.splits


def test_what_if_shows_the_load_by_hour(operating: Client, operator: Actor, sf: Cluster) -> None:
    path = "/clusters/sf/streams/what-if/"
    refused = operating.get(path, {"average": "5"})
    assert (refused.status_code, len(refused.context["general"])) == (422, 1)
    set_split_capacity(operator, sf, 100.0, emulated=False)
    arrived(sf, timezone.now(), {"s0": [30.0] * 70})
    context = operating.get(path, {"average": "5", "peak": "10"}).context
    assert sum(row["chosen"] for row in context["heat"]) == 1
    assert all(len(row["cells"]) == 24 for row in context["heat"])
    wrong = operating.get(path, {"average": "5", "peak": "1"})
    rows = {row.item.name: row.faults for row in wrong.context["what_if_fields"]}
    assert rows["average"]


def test_levels_of_cells_follow_the_share() -> None:
    shares = [None, 0.2, 0.6, 0.7, 0.9, 1.2]
    assert [HourCell(0, share).level for share in shares] == [0, 0, 1, 2, 3, 4]


def test_the_chart_has_rates_interval_and_redirections(
    operating: Client, stream: Stream, sf: Cluster, operator: Actor
) -> None:
    figure = rate_figure(None, [])
    assert figure["data"] == []
    set_split_capacity(operator, sf, 100.0, emulated=False)
    arrived(sf, timezone.now(), {"s0": [30.0] * 40})
    operating.post(page_of(stream, "redirect/"), {"split": str(1 - stream.split)})
    figure = operating.get(page_of(stream, "charts/")).json()["figures"]["rate"]
    names = [trace["name"] for trace in figure["data"]]
    rates = ["measured", "forecast", "left by the other streams"]
    assert names == ["90 % interval, low", "90 % interval", *rates]
    expected = figure["data"][3]
    assert expected["y"][0] == pytest.approx(30.0)
    assert len(figure["layout"]["annotations"]) == 1
