"""The Lab's doors for scripts."""

import json
from typing import Any

import pytest
from django.test import Client

from controlplane import lab
from controlplane.access.roles import Actor
from controlplane.models import LabRun
from tests.controlplane.api.callers import scripted
from tests.controlplane.lab.small_experiments import NAME, PLANNER, know, small_experiment

pytestmark = pytest.mark.django_db(transaction=True)
RUNS = "/api/v1/lab/runs"
ASKED = {"planner": PLANNER, "experiment": NAME, "parameters": {"seeds": 1}, "values": [2, 1]}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small experiment is known."""
    know(monkeypatch, small_experiment())


@pytest.fixture
def script(operator: Actor) -> Client:
    """A client with an operator's token."""
    return scripted(operator)


def post(client: Client, path: str, body: Any = None) -> Any:
    return client.post(path, json.dumps(body or {}), content_type="application/json")


def test_experiments_describe_themselves(script: Client) -> None:
    """Enough to ask for a run: parameters with types, what is swept, what can be compared."""
    names = [one["name"] for one in script.get("/api/v1/lab/experiments").json()]
    assert {"fig3a", "fig7c", NAME} <= set(names)
    assert script.get("/api/v1/lab/experiments?planner=nothing").json() == []
    one = script.get(f"/api/v1/lab/experiments/{PLANNER}/{NAME}").json()
    assert (one["x"]["name"], one["x"]["log"]) == ("width", True)
    fields = {field["name"]: field for field in one["parameters"]}
    assert list(fields) == ["seeds", "height", "shape", "hollow"]
    assert fields["shape"]["choices"] == ["square", "round", "flat"]
    assert fields["hollow"]["type"] == "bool"
    assert script.get("/api/v1/lab/experiments/placement/nothing").status_code == 404


def test_a_run_is_requested_and_read_with_its_table(script: Client) -> None:
    """202 now, a conflict while there is no table, then the table."""
    answer = post(script, RUNS, ASKED)
    assert answer.status_code == 202
    run = answer.json()
    assert (run["state"], run["values"], run["series"]) == ("queued", [1, 2], ["single", "double"])
    early = script.get(f"{RUNS}/{run['id']}/table")
    assert (early.status_code, early.json()["code"]) == (409, "no_table")
    lab.run(run["id"])
    assert script.get(f"{RUNS}/{run['id']}").json()["state"] == "done"
    table = script.get(f"{RUNS}/{run['id']}/table").json()
    assert table["columns"] == ["width", "series", "seed", "area", "seconds"]
    assert table["rows"][0] == [1.0, "single", 0, 2.0, 0.5]


def test_faults_are_told_by_field(script: Client) -> None:
    """In the shape that every refusal has."""
    answer = post(script, RUNS, ASKED | {"series": ["magic"], "parameters": {"height": 0}})
    assert answer.status_code == 422
    assert set(answer.json()["fields"]) == {"series", "height"}
    assert answer.json()["fields"]["height"] == ["Must be at least 1, not 0"]
    assert not LabRun.objects.exists()


def test_a_run_is_cancelled_repeated_and_deleted(script: Client) -> None:
    """What a person can do, a script can do."""
    path = f"{RUNS}/{post(script, RUNS, ASKED).json()['id']}"
    assert post(script, f"{path}/cancel").json()["state"] == "cancelled"
    assert post(script, f"{path}/cancel").status_code == 409
    again = post(script, f"{path}/again").json()
    assert (again["state"], again["values"]) == ("queued", [1, 2])
    assert script.delete(path).status_code == 204
    assert script.get(path).status_code == 404
    listed = script.get(f"{RUNS}?experiment={NAME}&state=queued").json()
    assert [run["id"] for run in listed["runs"]] == [again["id"]]


def test_results_are_compared_judged_and_exported(script: Client) -> None:
    """Each with the run's own address."""
    paths = []
    for height in (2, 4):
        parameters = {"seeds": 1, "height": height}
        number = post(script, RUNS, ASKED | {"parameters": parameters}).json()["id"]
        lab.run(number)
        paths.append(f"{RUNS}/{number}")
    run = script.get(paths[1]).json()
    assert set(run["timings"]) == {"single", "double"}
    assert run["estimate"]["basis"] == "experiment"
    assert script.get(f"{paths[1]}/table").json()["complete"] is True
    other = paths[0].rpartition("/")[2]
    compared = script.get(f"{paths[1]}/comparison?other={other}").json()
    assert compared["differences"] == [{"name": "height", "this": 4, "other": 2}]
    assert compared["points"][0]["ratio"] == 2.0
    assert script.get(f"{paths[1]}/claims").json() == []
    csv = script.get(f"{paths[1]}/export")
    assert csv["Content-Type"].startswith("text/csv")
    assert csv.content.decode().splitlines()[0] == "width,series,seed,area,seconds"
    assert script.get(f"{paths[1]}/export?format=svg").content.startswith(b"<svg")
    estimated = post(script, "/api/v1/lab/estimate", ASKED | {"master": "local[2]"}).json()
    assert (estimated["basis"], estimated["runs"]) == ("model", 0)


def test_a_figure_has_the_claims_of_its_paper(script: Client) -> None:
    claims = script.get("/api/v1/lab/experiments/placement/fig3a").json()["claims"]
    assert [claim["source"] for claim in claims] == ["figure 3(a)", "figure 3(a)", "section 6"]


def test_a_run_is_named_and_hidden(script: Client, viewer: Actor) -> None:
    """Hidden means unknown, not forbidden."""
    path = f"{RUNS}/{post(script, RUNS, ASKED).json()['id']}"
    change = {"name": "Mine", "visibility": "owner"}
    changed = script.patch(path, json.dumps(change), content_type="application/json").json()
    assert (changed["name"], changed["visibility"]) == ("Mine", "owner")
    assert [run["name"] for run in script.get(f"{RUNS}?q=mine").json()["runs"]] == ["Mine"]
    client = scripted(viewer)
    for part in ("", "/table", "/claims", "/export"):
        assert client.get(path + part).status_code == 404
