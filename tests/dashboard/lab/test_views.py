"""The Lab's pages: what there is, asking for a run, what came of it."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from controlplane import lab
from controlplane.access.roles import Actor
from controlplane.lab.comparison import ParameterDifference
from controlplane.models import LabRun
from controlplane.numbers import MISSING
from dashboard.lab.results import difference_rows
from tests.controlplane.lab.small_experiments import NAME, PLANNER, know, small_experiment
from tests.dashboard.views.test_verbs import said

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = f"/lab/{PLANNER}/{NAME}/"
FORM = {
    "values": "1, 3", "series": ["single"], "seeds": "2", "height": "4", "shape": "flat",
    "hollow": "true",
}  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The small experiment is known."""
    know(monkeypatch, small_experiment())


@pytest.fixture
def run(operator: Actor) -> LabRun:
    """A run that waits."""
    return lab.request(operator, PLANNER, NAME, {"seeds": 2, "hollow": True}, [1.0, 2.0])


@pytest.fixture
def done(run: LabRun) -> LabRun:
    """A run with its table."""
    lab.run(run.pk)
    run.refresh_from_db()
    assert run.state == "done", run.error
    return run


def text(client: Client, path: str, **more: Any) -> str:
    answer = client.get(path, **more)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def test_the_lab_lists_experiments_and_says_that_nothing_has_run(operating: Client) -> None:
    content = text(operating, "/lab/")
    assert 'href="/lab/placement/fig3a/"' in content
    assert "There are no runs yet" in content
    assert "Choose an experiment." in content


def test_the_lab_lists_runs_with_their_progress(viewing: Client, run: LabRun) -> None:
    LabRun.objects.update(state="running", progress=0.42)
    content = text(viewing, "/lab/")
    assert f"/lab/runs/{run.pk}/" in content
    assert "42 %" in content
    # What refreshes itself is the list alone.
    fragment = text(viewing, "/lab/", headers={"hx-request": "true"})
    assert "42 %" in fragment
    assert "<html" not in fragment


def test_the_lists_are_filtered(viewing: Client, run: LabRun) -> None:
    assert "No run is failed" in text(viewing, "/lab/?state=failed")
    assert f"Run {run.pk}" in text(viewing, f"/lab/?planner={PLANNER}&experiment={NAME}")
    assert f"Run {run.pk}" not in text(viewing, "/lab/?planner=placement&experiment=fig3a")


def test_the_form_has_every_parameter_but_the_swept_one(operating: Client) -> None:
    """Its kind decides its input; what is swept is given as values."""
    content = text(operating, PAGE)
    assert 'value="1, 10, 100"' in content
    assert 'name="width"' not in content
    assert '<select id="p-shape"' in content
    assert 'name="hollow" type="checkbox"' in content
    assert content.count('name="series"') == 3
    assert content.count(" checked>") == 2
    assert "Least cost" in content


def test_the_form_begins_with_a_run_that_one_comes_from(operating: Client, run: LabRun) -> None:
    content = text(operating, f"{PAGE}?run={run.pk}")
    assert 'value="1, 2"' in content
    assert f"with the parameters of Run {run.pk}" in content
    assert 'name="hollow" type="checkbox" value="true" checked' in content


def test_a_run_is_asked_for(operating: Client) -> None:
    answer = operating.post(PAGE, FORM)
    run = LabRun.objects.get()
    assert answer["Location"] == f"/lab/runs/{run.pk}/"
    assert (run.values, run.series) == ([1.0, 3.0], ["single"])
    assert run.parameters == {"seeds": 2, "height": 4, "shape": "flat", "hollow": True}
    assert (run.name, run.visibility, run.master) == ("", "everyone", "")


def test_a_run_is_named_hidden_and_computed_by_spark(operating: Client) -> None:
    operating.post(PAGE, FORM | {"name": " Mine ", "visibility": "owner", "master": "local[2]"})
    run = LabRun.objects.get()
    assert (run.name, run.visibility, run.master) == ("Mine", "owner", "local[2]")
    for master in ("spark://elsewhere:7077", "local[99]"):
        refused = operating.post(PAGE, FORM | {"master": master})
        assert refused.status_code == 422
        assert "not a master of this site" in refused.content.decode()


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        ({"values": "1 x"}, "Must be numbers"),
        ({"values": " "}, "Must name at least one value"),
        ({"values": "-1"}, "Must be at least 0"),
        ({"series": []}, "Must name at least one series"),
        ({"height": "x"}, "Must be a whole number"),
        ({"height": "0"}, "Must be at least 1"),
        ({"shape": "odd"}, "Must be one of square, round, flat"),
    ],
)
def test_faults_are_told_at_their_field_and_what_was_typed_stays(
    operating: Client, sent: dict[str, Any], fault: str
) -> None:
    answer = operating.post(PAGE, FORM | {"seeds": "7"} | sent)
    assert answer.status_code == 422
    content = answer.content.decode()
    assert fault in content
    assert 'name="seeds" inputmode="decimal" value="7"' in content
    assert not LabRun.objects.exists()


def test_a_viewer_sees_no_verb(viewing: Client, done: LabRun) -> None:
    page = f"/lab/runs/{done.pk}/"
    assert "Run again" not in text(viewing, page)
    assert "Start the run" not in text(viewing, PAGE)


@pytest.mark.parametrize("verb", ["cancel", "again", "change", "delete"])
def test_a_verb_is_not_a_link(operating: Client, run: LabRun, verb: str) -> None:
    assert operating.get(f"/lab/runs/{run.pk}/{verb}/").status_code == 405


def test_what_is_not_there_is_not_found(operating: Client) -> None:
    for path in ("/lab/runs/77/", "/lab/placement/fig9/", "/lab/nothing/fig4a/"):
        assert operating.get(path).status_code == 404


def test_a_run_under_way_refreshes_until_it_is_over(operating: Client, run: LabRun) -> None:
    """Its live part brings the points; at the end the whole page is read again."""
    page = f"/lab/runs/{run.pk}/"
    assert "Position 1 in the queue" in text(operating, page)
    LabRun.objects.update(
        state="running", progress=0.25, started_at=timezone.now() - timedelta(seconds=20),
        table={"columns": ["width", "series", "seed", "area", "seconds"],
               "rows": [[1.0, "single", 0, 2.0, 0.5]]},
    )  # fmt: skip
    content = text(operating, page)
    assert 'hx-trigger="every 1s"' in content
    assert "25 % of the estimated work" in content
    assert "About 1 min left" in content or "left, by progress" in content
    live = operating.get(page, headers={"hx-request": "true"})
    assert live["HX-Trigger"] == "weir:points"
    assert "<html" not in live.content.decode()
    assert list(operating.get(f"{page}charts.json").json()["figures"]) == ["area"]
    LabRun.objects.update(state="cancelled")
    over = operating.get(page, headers={"hx-request": "true"})
    assert over["HX-Refresh"] == "true"
    assert 'hx-trigger="every 1s"' not in text(operating, page)


def test_a_run_that_failed_says_why(viewing: Client, run: LabRun) -> None:
    LabRun.objects.update(state="failed", error="It did not fit")
    assert "It did not fit" in text(viewing, f"/lab/runs/{run.pk}/")


def test_a_run_that_is_done_has_chart_and_table(viewing: Client, done: LabRun) -> None:
    page = f"/lab/runs/{done.pk}/"
    content = text(viewing, page)
    assert "Area by width" in content
    assert "± 0.71" in content
    assert "The paper has no claim about this sweep" in content
    figures = viewing.get(f"{page}charts.json").json()["figures"]
    assert [trace["name"] for trace in figures["area"]["data"]] == ["single", "double"]


def test_another_measure_is_looked_at(viewing: Client, done: LabRun) -> None:
    page = f"/lab/runs/{done.pk}/"
    content = text(viewing, f"{page}?measure=seconds")
    assert f"{page}charts.json?measure=seconds" in content
    assert '<option value="area">Area</option>' in content
    assert '<option value="seconds" selected>Time of a trial</option>' in content
    assert list(viewing.get(f"{page}charts.json?measure=seconds").json()["figures"]) == ["seconds"]


def test_a_run_is_taken_away_as_a_file(viewing: Client, done: LabRun) -> None:
    page = f"/lab/runs/{done.pk}/"
    rows = viewing.get(f"{page}table.csv")
    assert rows["Content-Disposition"].endswith(f'"placement-small-run-{done.pk}.csv"')
    assert len(rows.content.decode().splitlines()) == 1 + 2 * 2 * 2
    told = json.loads(viewing.get(f"{page}table.json").content)
    assert told["rows"] == done.table["rows"]
    assert viewing.get(f"{page}figure.svg").content.decode().startswith("<svg")
    html = viewing.get(f"{page}figure.html")
    assert "attachment" in html["Content-Disposition"]
    assert "Plotly.newPlot" in html.content.decode()


def test_a_run_without_a_table_has_no_files(viewing: Client, run: LabRun) -> None:
    assert viewing.get(f"/lab/runs/{run.pk}/charts.json").json() == {"figures": {}}
    for name in ("table.csv", "table.json", "figure.html", "figure.svg"):
        assert viewing.get(f"/lab/runs/{run.pk}/{name}").status_code == 404


def test_a_run_of_an_experiment_that_is_no_more_keeps_its_table(
    operating: Client, done: LabRun
) -> None:
    """After an update of Weir."""
    LabRun.objects.update(experiment="of_old")
    page = f"/lab/runs/{done.pk}/"
    content = text(operating, page)
    assert "does not have the experiment" in content
    assert "Run again with changes" not in content
    assert operating.get(f"{page}table.csv").status_code == 200
    assert operating.get(f"{page}figure.html").status_code == 404
    assert "of_old" in text(operating, "/lab/")
    LabRun.objects.update(state="failed")
    assert "<dt>Height</dt>" in text(operating, page), "the words of the name"
    assert "no experiment" in said(operating.post(f"{page}again/"))


def test_runs_are_cancelled_repeated_and_deleted(operating: Client, run: LabRun) -> None:
    page = f"/lab/runs/{run.pk}/"
    assert "Run cancelled." in said(operating.post(f"{page}cancel/"))
    assert "cancelled already" in said(operating.post(f"{page}cancel/"))
    answer = operating.post(f"{page}again/")
    new = LabRun.objects.get(state="queued")
    assert answer["Location"] == f"/lab/runs/{new.pk}/"
    assert f"Run {run.pk} is deleted." in said(operating.post(f"{page}delete/"))
    assert list(LabRun.objects.all()) == [new]


def test_experiments_are_searched_by_words(viewing: Client) -> None:
    """Words of names, figures, algorithms and claims; the fragment alone for a live search."""
    content = text(viewing, "/lab/?q=storm+hashing")
    assert "/lab/migration/fig9/" in content
    assert "/lab/placement/fig3a/" not in content
    fragment = viewing.get(
        "/lab/?q=plateau", headers={"hx-request": "true", "hx-target": "experiments"}
    ).content.decode()
    assert "/lab/placement/fig3b/" in fragment
    assert "<html" not in fragment
    assert "No experiment matches" in text(viewing, "/lab/?q=zzz")


def test_experiments_are_grouped_by_figure_with_their_newest_result(
    viewing: Client, done: LabRun
) -> None:
    """A drawing of the run, or of the stored result."""
    content = text(viewing, "/lab/?q=small+experiment")
    assert "Further experiments" in content
    assert content.count('<svg class="thumb"') == 1
    assert "stored result" not in content
    figures = text(viewing, "/lab/?q=offline")
    assert "Figure 3" in figures
    assert "stored result" in figures


def test_the_estimate_follows_the_form(operating: Client, done: LabRun) -> None:
    """By finished runs; faults of the form are named instead."""
    fragment = text(operating, f"{PAGE}estimate/?values=1,2&series=single&seeds=2")
    assert "by 1 finished run of it" in fragment
    wrong = text(operating, f"{PAGE}estimate/?values=1&series=single&height=0")
    assert "Height of the area: Must be at least 1, not 0" in wrong


def test_a_run_is_compared_with_another(operating: Client, done: LabRun, operator: Actor) -> None:
    other = lab.request(operator, PLANNER, NAME, {"seeds": 2, "height": 4}, [1.0, 2.0])
    lab.run(other.pk)
    page = f"/lab/runs/{other.pk}/"
    content = text(operating, f"{page}?with={done.pk}")
    assert "height of the area 4 ↔ 2" in content
    assert "Largest difference: 1.94 times at 2 (double)" in content
    chart = operating.get(f"{page}comparison.json?with={done.pk}").json()["figures"]["comparison"]
    assert [trace["name"] for trace in chart["data"]] == ["single", "double"]
    both = operating.get(f"{page}comparison.json?with={done.pk}&how=overlay").json()
    assert len(both["figures"]["comparison"]["data"]) == 4
    assert operating.get(f"{page}comparison.json").status_code == 404


def test_differences_of_runs_have_titles() -> None:
    """Also values and master, and a parameter that the experiment does not have any more."""
    differences = (
        ParameterDifference("values", [1.0], [1.0, 2.5]),
        ParameterDifference("master", "", "local[2]"),
        ParameterDifference("old_limit", None, 3_000),
    )
    assert difference_rows(differences, small_experiment()) == [
        ("Width", "1", "1, 2.5"),
        ("Computed by", "the Lab's worker", "local[2]"),
        ("Old limit", MISSING, "3,000"),
    ]


def test_a_run_is_named_and_shared(operating: Client, run: LabRun) -> None:
    page = f"/lab/runs/{run.pk}/"
    assert "Run changed." in said(operating.post(f"{page}change/", {"name": "Wide"}))
    assert "Wide" in text(operating, "/lab/")
    operating.post(f"{page}change/", {"name": "Wide", "visibility": "owner"})
    run.refresh_from_db()
    assert (run.name, run.visibility) == ("Wide", "owner")


@pytest.mark.parametrize("part", ["", "charts.json", "comparison.json", "table.csv"])
def test_pages_of_a_run_refuse_parameters_that_they_do_not_have(
    viewing: Client, done: LabRun, part: str
) -> None:
    assert viewing.get(f"/lab/runs/{done.pk}/{part}?measrue=seconds").status_code == 422
    path = f"/lab/{done.planner}/{done.experiment}/"
    assert viewing.get(path).status_code == 200
    assert viewing.get(f"{path}?rnu={done.pk}").status_code == 422


def test_a_stored_result_has_figures_claims_and_files(viewing: Client) -> None:
    """Without a run, the page draws the stored result with axes and its finding."""
    page = text(viewing, "/lab/placement/fig5a/")
    assert "claim holds in the stored result" in page
    assert "Computed by Weir with seeds 1" in re.sub(r"\s+", " ", page)
    figures = viewing.get("/lab/placement/fig5a/stored/charts.json").json()["figures"]
    drawn = figures["replication_factor"]
    assert drawn["layout"]["yaxis"]["title"]["text"] == "Replication factor"
    assert "source popularity" in drawn["layout"]["xaxis"]["title"]["text"]
    assert "1 of 1 claim holds" in drawn["layout"]["meta"]["finding"]
    assert [len(trace["x"]) for trace in drawn["data"]] == [9, 9, 9, 9]
    for kind, start in (("csv", "exponent,series"), ("json", "{"), ("svg", "<svg"), ("html", "<")):
        name = "table" if kind in ("csv", "json") else "figure"
        url = f"/lab/placement/fig5a/stored/{name}.{kind}"
        assert url in page
        answer = viewing.get(url)
        assert answer.content.decode().lstrip().startswith(start)
        assert f"placement-fig5a-stored.{kind}" in answer["Content-Disposition"]


def test_an_experiment_without_stored_result_has_no_files(viewing: Client) -> None:
    """The small experiment of the tests was never stored."""
    path = f"/lab/{PLANNER}/{NAME}/stored"
    assert viewing.get(f"{path}/charts.json").status_code == 404
    assert viewing.get(f"{path}/table.csv").status_code == 404
    assert "There is no result yet" in text(viewing, PAGE)
