"""Pages of queries: the form, what its checks say, the query's page."""

import json
import re
from typing import Any

import pytest
from django.test import Client

from controlplane.models import Cluster, Query
from controlplane.topology import placement
from tests.support.windows import write_windows

pytestmark = pytest.mark.django_db(transaction=True)
NEW, CHECK = "/clusters/sf/queries/new/", "/clusters/sf/queries/check/"
FORM = {
    "name": "fast",
    "streams": "s0 s1",
    "where": "speed > 0",
    "columns": "metres = speed / 100\nkmh = metres\n  * 3.6",
    "key": "stream, car",
    "aggregates": "n = count(*)\n\nfast = max(kmh)",
    "window": "300",
    "slide": "60",
    "lateness": "30.5",
    "tasks": "4",
    "ends_at": "",
}


def submitted(client: Client, **changed: str) -> Query:
    answer = client.post(NEW, FORM | changed)
    query = Query.objects.get(name=FORM["name"])
    assert answer["Location"] == f"/clusters/sf/queries/{query.pk}/"
    placement.place_pending(query.cluster_id)
    query.refresh_from_db()
    return query


def checked(client: Client, **changed: str) -> str:
    """Return what the live check answers, without runs of blanks."""
    answer = client.post(CHECK, FORM | {"field": "text"} | changed)
    assert answer.status_code == 200
    return answer.content.decode()


def faults_of(content: str, field: str) -> str:
    found = re.search(rf'id="faults-{field}"[^>]*>(.*?)</div>', content, re.DOTALL)
    assert found, content
    return found[1]


def test_a_query_is_submitted(operating: Client, sf: Cluster) -> None:
    query = submitted(operating)
    assert json.loads(query.text) == {
        "aggregates": {"n": "count(*)", "fast": "max(kmh)"},
        "window_s": 300.0,
        "slide_s": 60.0,
        "lateness_s": 30.5,
        "where": "speed > 0",
        "columns": {"metres": "speed / 100", "kmh": "metres\n  * 3.6"},
        "key": ["stream", "car"],
    }
    assert (query.task_count, query.window_s) == (4, 300.0)


def test_every_fault_stands_at_its_field_and_what_was_typed_stays(
    operating: Client, sf: Cluster
) -> None:
    wrong = {
        "name": "a",
        "where": "spede > 1",
        "columns": "kmh speed",
        "window": "soon",
        "slide": "-1",
        "tasks": "many",
        "ends_at": "2020-01-01T00:00",
    }
    answer = operating.post(NEW, FORM | wrong)
    assert answer.status_code == 422
    content = answer.content.decode()
    assert "is called a already" in content
    assert "Must be in the future" in content
    assert "There is no column spede" in faults_of(content, "where")
    assert "Line 1: write name = expression" in faults_of(content, "columns")
    assert "Must be a number of seconds" in faults_of(content, "window")
    assert "Must be whole milliseconds" in faults_of(content, "slide")
    assert "Must be a whole number" in faults_of(content, "tasks")
    assert "kmh speed</textarea>" in content
    assert not Query.objects.filter(name="fast").exists()


def test_the_check_points_at_the_place(operating: Client, sf: Cluster) -> None:
    assert faults_of(checked(operating), "where") == ""
    shown = faults_of(checked(operating, where="speed > 0\nand spede < 3"), "where")
    assert 'and spede &lt; 3\n<span class="marks">    ^^^^^</span>' in shown
    content = checked(operating, aggregates="fast = max(spede)")
    shown = faults_of(content, "aggregates")
    assert '<b class="mono">fast</b>' in shown
    assert "max(spede)\n" in shown
    assert '<span class="marks">    ^^^^^</span>' in shown
    assert "Correct: aggregates" in content


def test_the_check_shows_the_columns_of_the_results(operating: Client, sf: Cluster) -> None:
    """Also before there is a name or a stream."""
    content = checked(operating, name="", streams="")
    found = re.findall(r'<li><span class="mono">(\w+)</span> <span class="muted">([^<]*)', content)
    expected = [("stream", "text, key"), ("car", "int, key"), ("n", "int"), ("fast", "float")]
    assert found == expected


def test_a_text_is_no_way_to_put_markup_on_the_page(operating: Client, sf: Cluster) -> None:
    content = checked(operating, where="'<script>alert(1)</script>' + 1", key="<b>")
    assert "<script" not in content
    assert "<b>" not in content


def test_the_form_lists_the_whole_language(operating: Client, sf: Cluster) -> None:
    content = operating.get(NEW).content.decode()
    for written in ("quantile(number, share)", "day_of_week(time or date)", "cast(x as int)"):
        assert written in content


def test_the_page_of_a_query_reads_like_sql(operating: Client, sf: Cluster) -> None:
    query = submitted(operating)
    content = operating.get(f"/clusters/sf/queries/{query.pk}/").content.decode()
    sql = re.search(r'<pre class="code sql"[^>]*>(.*?)</pre>', content, re.DOTALL)
    assert sql
    assert re.sub("<[^>]*>", "", sql[1]).splitlines() == [
        "WITH     metres = speed / 100,",
        "         kmh = metres * 3.6",
        "SELECT   stream,",
        "         car,",
        "         count(*) AS n,",
        "         max(kmh) AS fast",
        "FROM     s0, s1",
        "WHERE    speed &gt; 0",
        "GROUP BY stream, car, window of 300 s every 60 s",
        "LATENESS 30.5 s",
        "SPLIT    over 4 tasks by stream, car",
    ]
    assert "1 on node 0, 1 on node 1, 1 on node 2, 1 on node 3" in content
    assert "No window yet" in content


def results(query: Query, sf: Cluster, **first: float) -> None:
    """Write two windows of two cars; `first`: more of the first row."""
    s1 = sf.streams.get(name="s1").pk
    row: dict[str, Any] = {"stream": s1, "k0": s1, "k1": 1007, "s0": 12_000, "s1": 41.25}
    other = row | {"k1": 2, "s1": 9.0}
    write_windows(
        query, 3, [row | {"pane": 0} | first, row | {"pane": 60_000}, other | {"pane": 60_000}]
    )


def cells_of(row: str) -> list[str]:
    """Return the texts of the cells of a row of HTML."""
    cells = re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)
    return [re.sub("<[^>]*>", "", cell) for cell in cells]


def test_results_are_rows_by_key_newest_first(operating: Client, sf: Cluster) -> None:
    query = submitted(operating)
    results(query, sf)
    path = f"/clusters/sf/queries/{query.pk}/results/"
    content = operating.get(path).content.decode()
    rows = [cells_of(row) for row in content.split("<tr>")[2:]]
    assert rows == [
        ["1970-01-01 00:01:00", "s1", "1007", "12,000", "41.25", "open"],
        ["1970-01-01 00:01:00", "s1", "2", "12,000", "9", "open"],
        ["1970-01-01 00:00:00", "s1", "1007", "12,000", "41.25", "open"],
    ]


def test_values_of_a_sample_are_scaled_or_as_computed(operating: Client, sf: Cluster) -> None:
    query = submitted(operating)
    results(query, sf)
    path = f"/clusters/sf/queries/{query.pk}/results/"
    assert "Kept" not in operating.get(path).content.decode()
    results(query, sf, kept=0.25)
    content = operating.get(path).content.decode()
    last = cells_of(content.split("<tr>")[-1])
    assert last == ["1970-01-01 00:00:00", "s1", "1007", "≈ 48,000", "41.25", "25 %", "open"]
    assert re.search(r'title="47,[\d,]+ to 48,[\d,]+ with 95 % confidence; 12,000 in', content)
    assert "100 %" in content
    assert "?values=computed#windows" in content
    content = operating.get(f"{path}?values=computed").content.decode()
    last = cells_of(content.split("<tr>")[-1])
    assert last == ["1970-01-01 00:00:00", "s1", "1007", "12,000", "41.25", "25 %", "open"]
    charts = f"/clusters/sf/queries/{query.pk}/charts.json"
    drawn = [
        operating.get(f"{charts}?value=n{more}").json()["figures"]["n"]["data"][0]["y"][0]
        for more in ("", "&values=computed")
    ]
    assert drawn == [48_000, 12_000]


def test_the_chosen_value_is_drawn_by_key(operating: Client, sf: Cluster) -> None:
    query = submitted(operating)
    path = f"/clusters/sf/queries/{query.pk}/charts.json"
    assert operating.get(path).json() == {"figures": {}}
    results(query, sf)
    (drawn,) = operating.get(f"{path}?value=fast").json()["figures"].items()
    assert drawn[0] == "fast"
    assert [(line["name"], line["x"], line["y"]) for line in drawn[1]["data"]] == [
        ("s1 · 1007", [0, 60_000], [41.25, 41.25]),
        ("s1 · 2", [60_000], [9.0]),
    ]
    assert list(operating.get(f"{path}?value=nonsense").json()["figures"]) == ["n"]


def test_a_query_whose_function_is_gone_says_so(operating: Client, sf: Cluster) -> None:
    query = submitted(operating)
    Query.objects.filter(pk=query.pk).update(text='{"aggregates":{"n":"gone_by_now(speed)"}}')
    content = operating.get(f"/clusters/sf/queries/{query.pk}/").content.decode()
    assert "gone_by_now" in content
    assert "cannot be read" in content
    figures = operating.get(f"/clusters/sf/queries/{query.pk}/charts.json").json()
    assert figures == {"figures": {}}
