"""Every refusal is problem details, also those of Django and of the router."""

from typing import Any

import pytest
from django.db import OperationalError
from django.http import HttpResponse, HttpResponseNotAllowed
from django.test import Client, RequestFactory

from controlplane.access.roles import Actor
from controlplane.api.common.problems import CONTENT_TYPE, _database_away, api_problems
from controlplane.models import Cluster, Query
from tests.controlplane.api.callers import get, post, scripted
from tests.support.nightly import NIGHTLY
from tests.support.texts import SUMMARY_JSON

pytestmark = pytest.mark.django_db(transaction=True)


def told(answer: Any) -> tuple[int, str]:
    """Return status and code of a problem, and check its shape."""
    assert answer["Content-Type"] == CONTENT_TYPE
    body = answer.json()
    assert body["status"] == answer.status_code
    assert body["type"] == f"urn:weir:problem:{body['code']}"
    assert body["title"]
    assert body["detail"]
    return body["status"], body["code"]


def test_an_unknown_address(script: Client) -> None:
    assert told(get(script, "/nowhere")) == (404, "not_found")
    assert told(get(script, "/clusters/none")) == (404, "not_found")


def test_a_method_that_is_not_taken(script: Client) -> None:
    """The header says which are."""
    answer = script.put("/api/v1/clusters")
    assert told(answer) == (405, "method_not_allowed")
    assert "GET" in answer["Allow"]


def test_nobody_known_and_a_role_that_is_missing(viewer: Actor, sf: Cluster) -> None:
    assert told(get(Client(), "/clusters")) == (401, "unauthorized")
    assert told(post(scripted(viewer), "/clusters/sf/start")) == (403, "forbidden")


def test_a_body_of_another_shape_names_rows_and_fields(script: Client) -> None:
    """What the framework refuses has rows like what a service refuses."""
    rows = [{"name": name, "streams": ["s0"], "text": SUMMARY_JSON} for name in ("a", 3)]
    answer = post(script, "/clusters/sf/queries/bulk", {"queries": rows})
    assert told(answer) == (422, "malformed")
    assert list(answer.json()["rows"]) == ["1"]
    assert list(answer.json()["rows"]["1"]) == ["name"]
    assert not Query.objects.exists()


@pytest.mark.parametrize(
    "body",
    [{"queries": [{}] * 20_001}, {"queries": [{f"f{number}": 0 for number in range(20_001)}]},
     {"queries": [0] * 200_000}],
    ids=["rows", "fields", "numbers"],
)  # fmt: skip
def test_very_many_faults_are_counted_not_listed(script: Client, body: Any) -> None:
    """Each that is listed takes a kilobyte: of memory, and of the response."""
    answer = post(script, "/clusters/sf/queries/bulk", body)
    assert told(answer) == (422, "malformed")
    assert len(answer.content) < 20_000
    assert Query.objects.count() == 0


@pytest.mark.parametrize("places", [[2**61 - 1], [-1], [100_000]])
def test_numbers_that_are_compared_with_each_other_are_small(
    script: Client, places: list[int]
) -> None:
    """Whole numbers with equal hashes make a set of them quadratic."""
    answer = post(script, "/clusters/sf/proposals/1/without", {"places": places})
    assert told(answer) == (422, "malformed")


def test_what_breaks_is_told_without_its_insides(
    operator: Actor, sf: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No traceback goes out; the log has it."""

    def broken(*args: object) -> None:
        raise ZeroDivisionError("secret inside")

    monkeypatch.setattr("controlplane.api.clusters.routes.clusters_listing", broken)
    script = scripted(operator)
    script.raise_request_exception = False
    answer = get(script, "/clusters")
    assert told(answer) == (500, "broken")
    assert b"secret" not in answer.content


def test_a_database_that_is_away_is_worth_another_try() -> None:
    request = RequestFactory().get("/api/v1/clusters")
    answer = _database_away(request, OperationalError("database is locked"))
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")


def test_pages_keep_their_own_errors() -> None:
    """People read HTML; only what is under /api/ is retold."""
    respond = api_problems(lambda request: HttpResponseNotAllowed(["POST"]))
    assert respond(RequestFactory().get("/clusters/sf/"))["Content-Type"] != CONTENT_TYPE
    assert respond(RequestFactory().get("/api/v1/x"))["Allow"] == "POST"
    fine = api_problems(lambda request: HttpResponse("ok"))
    assert fine(RequestFactory().get("/api/v1/x")).content == b"ok"


@pytest.mark.nightly("databases", by_day=True)
@pytest.mark.both_databases
def test_thousands_of_queries_are_submitted_together_or_not_at_all(
    operator: Actor, sf: Cluster
) -> None:
    """One faulty row is named, and nothing is saved; without it all are. Ten thousand by night."""
    count = 10_000 if NIGHTLY else 2_000
    rows = [{"name": f"q{i}", "streams": [f"s{i % 6}"], "text": SUMMARY_JSON} for i in range(count)]
    script = scripted(operator)
    faulty = [*rows[:-1], rows[-1] | {"streams": ["nowhere"]}]
    answer = post(script, "/clusters/sf/queries/bulk", {"queries": faulty})
    assert told(answer) == (422, "invalid")
    assert list(answer.json()["rows"]) == [str(count - 1)]
    assert not Query.objects.exists()
    assert post(script, "/clusters/sf/queries/bulk", {"queries": rows}).json()["count"] == count
    assert Query.objects.filter(streams__isnull=False).count() == count
    assert (
        post(script, "/clusters/sf/queries/bulk", {"queries": [*rows, rows[0]]}).status_code == 422
    )
