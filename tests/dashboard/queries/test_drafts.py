"""Preview and explanation beside the form of a query."""

from typing import Any

import pytest
from django.test import Client

from controlplane.models import Cluster, Query
from dashboard.queries.submission import completions
from tests.support import cluster as made
from tests.support.previews import answer_at_once
from tests.support.records import append_at

pytestmark = [pytest.mark.django_db, pytest.mark.nightly("pages")]
HTMX: Any = {"HTTP_HX_REQUEST": "true"}
FORM = {
    "streams": "s0 s1", "key": "car", "aggregates": "n = count(*)\nfast = max(speed)",
    "window": "60", "lateness": "120", "tasks": "1", "retention": "7",
    "retention_unit": "days", "retention_windows": "1000", "shedding_weight": "1",
    "shedding_floor": "0",
}  # fmt: skip
PREVIEW = "/clusters/sf/queries/preview/"


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_at_once(monkeypatch)


def test_a_preview_is_shown_and_nothing_is_stored(operating: Client, sf: Cluster) -> None:
    append_at(sf, made.stream_id(sf, "s0"), 1_000_000, records=1)
    count = Query.objects.count()
    context = operating.post(PREVIEW, FORM, **HTMX).context
    assert context["table"]["values"] == ["n", "fast"]
    assert [(row["keys"], row["values"]) for row in context["table"]["rows"]] == [
        (["1"], ["1", "5"])
    ]
    assert [stream.records for stream in context["preview"].streams] == [1, 0]
    assert Query.objects.count() == count


def test_faults_and_refusals_stand_in_the_place_of_the_preview(
    operating: Client, sf: Cluster
) -> None:
    wrong = operating.post(PREVIEW, FORM | {"where": "spede > 3"}, **HTMX).context
    assert wrong["wrong"] == ["where"]
    empty = operating.post(PREVIEW, FORM | {"streams": ""}, **HTMX).context
    assert empty["wrong"] == ["streams"]
    refused = operating.post(PREVIEW, FORM, **HTMX).context
    assert "preview" not in refused
    assert refused["refusal"]


def test_an_explanation_has_the_node_and_the_streams(operating: Client, sf: Cluster) -> None:
    draft = operating.post("/clusters/sf/queries/explain/", FORM, **HTMX).context["draft"]
    assert draft.place is not None
    assert [stream.name for stream in draft.streams] == ["s0", "s1"]


def test_completions_are_those_of_the_language() -> None:
    words = completions()
    assert {"max", "count"} <= {word["name"] for word in words["aggregate"]}
    assert {"floor", "coalesce"} <= {word["name"] for word in words["function"]}
