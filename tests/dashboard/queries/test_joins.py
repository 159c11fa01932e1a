"""Pages of joins: the section of the form, what its checks say, the query's page."""

import json
import re

import pytest
from django.test import Client

from controlplane.models import Cluster, Query, Stream
from tests.dashboard.queries.test_texts import CHECK, FORM, NEW, faults_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("pages")]
JOIN = FORM | {
    "name": "crossing",
    "right": "s3, s2",
    "on": "car <-> car\nx // 100 <-> x // 100",
    "where": "a.speed > 0",
    "columns": "faster = b.speed - a.speed",
    "key": "a.car b.stream",
    "aggregates": "n = count(*)\nfaster = mean(faster)",
}


def checked(client: Client, **changed: str) -> str:
    answer = client.post(CHECK, JOIN | {"field": "text"} | changed)
    assert answer.status_code == 200
    return answer.content.decode()


def usable(content: str) -> list[str]:
    found = re.search(r'id="usable"[^>]*>(.*?)</div>', content, re.DOTALL)
    assert found, content
    return re.findall(r'<span class="mono">([\w.]+)</span>', found[1])


def test_a_join_is_submitted_and_reads_like_sql(operating: Client, sf: Cluster) -> None:
    assert operating.post(NEW, JOIN).status_code == 302
    query = Query.objects.get(name="crossing")
    text = json.loads(query.text)
    assert text["on"] == [["car", "car"], ["x // 100", "x // 100"]]
    assert text["right"] == [Stream.objects.get(name=name).pk for name in ("s3", "s2")]
    content = operating.get(f"/clusters/sf/queries/{query.pk}/").content.decode()
    sql = re.search(r'<pre class="code sql"[^>]*>(.*?)</pre>', content, re.DOTALL)
    assert sql
    assert re.sub("<[^>]*>", "", sql[1]).splitlines()[5:10] == [
        "FROM     (s0, s1) AS a",
        "JOIN     (s2, s3) AS b",
        "ON       a.car = b.car",
        "AND      (a.x // 100) = (b.x // 100)",
        "WITHIN   the same window",
    ]
    assert "2 joined with 2" in content
    assert re.findall(r'class="tag"[^>]*>([ab]: s\d)<', content) == [
        "a: s0", "a: s1", "b: s2", "b: s3",
    ]  # fmt: skip


def test_the_section_is_folded_until_it_is_filled(operating: Client, sf: Cluster) -> None:
    folded = '<details class="join">'
    assert folded in operating.get(f"{NEW}?mode=custom").content.decode()
    filled = operating.get(f"{NEW}?mode=custom&right=s3").content.decode()
    assert '<details class="join" open>' in filled
    answer = operating.post(NEW, JOIN | {"on": "car = car"})
    assert answer.status_code == 422
    assert '<details class="join" open>' in answer.content.decode()
    assert "car = car</textarea>" in answer.content.decode()


def test_the_check_tells_each_fault_at_its_field(operating: Client, sf: Cluster) -> None:
    content = checked(operating, right="s0 nowhere", on="car <-> cab\ncar = car\nts <-> car")
    assert "There is no stream nowhere" in faults_of(content, "right")
    assert "s0 is on the left side already" in faults_of(content, "right")
    told = faults_of(content, "on")
    assert re.findall(r'<b class="mono">(pair \d)</b>', told) == ["pair 1", "pair 2", "pair 3"]
    assert 'cab\n<span class="marks">^^^</span>' in told
    assert "Write left &lt;-&gt; right" in told
    assert "Compares time with int" in told
    assert "Correct: right streams, equal on both sides" in content


def test_columns_without_a_side_are_pointed_at(operating: Client, sf: Cluster) -> None:
    content = checked(operating, aggregates="n = max(speed)")
    told = faults_of(content, "aggregates")
    assert "names its side: a.speed or b.speed" in told
    assert '<span class="marks">    ^^^^^</span>' in told


def test_the_columns_to_use_follow_the_join_and_its_streams(operating: Client, sf: Cluster) -> None:
    schema = {
        "columns": [
            {"name": "ts", "type": "timestamp(ms)", "nullable": False},
            {"name": "speed", "type": "int32", "nullable": True},
        ],
        "event_time": "ts",
    }
    Stream.objects.filter(name="s3").update(schema=schema)
    plain = ["ts", "car", "x", "y", "speed", "stream"]
    every = usable(operating.get(f"{NEW}?mode=custom").content.decode())
    assert sorted(every) == sorted(plain)
    left = [f"a.{name}" for name in plain]
    assert usable(checked(operating)) == [*left, "b.ts", "b.speed", "b.stream"]
    assert usable(checked(operating, right="", on="")) == plain
    assert usable(checked(operating, right="", on="", streams="s3")) == ["ts", "speed", "stream"]


def test_the_check_shows_the_columns_of_the_results(operating: Client, sf: Cluster) -> None:
    found = re.findall(r'<li><span class="mono">([\w.]+)</span>', checked(operating))
    assert found == ["a.car", "b.stream", "n", "faster"]
