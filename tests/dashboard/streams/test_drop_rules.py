"""Drops on the page of a stream; key grouping and aggregator node on that of a query."""

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.background import ingestion
from controlplane.models import AuditEntry, Cluster, Drop, Node, Query
from controlplane.topology import aggregators, drop_rules
from controlplane.topology.drop_rules import DropSpec
from tests.dashboard.views.test_verbs import said
from tests.support.cluster import placed_split, stream_id, telemetry
from tests.support.records import append_at

pytestmark = pytest.mark.nightly("pages")

MINUTE = 60_000
POSTS = ["streams/{stream}/drops/set/", "streams/{stream}/drops/lift/",
         "queries/{query}/key-grouping/", "queries/{query}/aggregator/",
         "queries/{query}/tasks/", "queries/{query}/aggregators/"]  # fmt: skip


@pytest.fixture
def path(sf: Cluster) -> str:
    """The page of stream s0, which the queries a and b read."""
    return f"/clusters/sf/streams/{stream_id(sf, 's0')}/"


@pytest.fixture
def split(operator: Actor, sf: Cluster) -> Query:
    """A query over eight tasks that a node merges."""
    return placed_split(operator, sf, "split", "key")


@pytest.mark.parametrize("post", POSTS)
def test_only_an_operator_changes_and_only_by_post(
    viewing: Client, operating: Client, split: Query, sf: Cluster, post: str
) -> None:
    where = f"/clusters/sf/{post.format(stream=stream_id(sf, 's0'), query=split.pk)}"
    values = {
        "percent": "30",
        "key_grouping": "partial_key",
        "node": "1",
        "tasks": "9",
        "count": "2",
    }
    assert viewing.post(where, values).status_code == 403
    assert operating.get(where).status_code == 405
    assert not Drop.objects.exists()
    assert not AuditEntry.objects.filter(action__startswith="query.key_grouping").exists()


def test_an_edge_that_drops_nothing_says_so(operating: Client, path: str) -> None:
    content = operating.get(path).content.decode()
    assert "All records are delivered to all queries" in content
    assert '<option value="a">to a (60 s windows)</option>' in content
    assert '<option value="c">' not in content, "c does not read it"


def test_a_viewer_sees_drops_and_no_buttons(
    viewing: Client, operator: Actor, sf: Cluster, path: str
) -> None:
    drop_rules.set_drop(operator, sf.streams.get(name="s0"), DropSpec(0.3), reason="too much")
    content = viewing.get(path).content.decode()
    assert "30 %" in content
    assert "too much" in content
    assert "drop-new" not in content
    assert "Lift" not in content


def test_a_drop_is_set_and_lifted(operating: Client, sf: Cluster, path: str) -> None:
    values = {"percent": "12.5", "kind": "records", "query": "a", "reason": "what-if"}
    answer = operating.post(f"{path}drops/set/", values)
    assert answer["Location"] == path
    assert said(answer) == "s0 to a drops 12.5 % of its records."
    drop = Drop.objects.get()
    assert (drop.value.steps[0][1], drop.reason) == (0.125, "what-if")
    content = operating.get(f"{path}drops/").content.decode()
    assert 'value="12.5"' in content
    answer = operating.post(f"{path}drops/lift/", {"query": "a"})
    assert said(answer).endswith("Records are kept again.")
    assert not Drop.objects.exists()


def test_windows_are_the_querys_own_unless_said(operating: Client, sf: Cluster, path: str) -> None:
    append_at(sf, stream_id(sf, "s0"), 20 * MINUTE)
    values = {"percent": "50 %", "kind": "windows", "query": "a", "window_s": "", "batch": "2"}
    answer = operating.post(f"{path}drops/set/", values)
    assert said(answer) == "s0 to a drops 50 % of its 60 s windows, 2 together."
    content = operating.get(path).content.decode()
    assert "50 % from" in content
    append_at(sf, stream_id(sf, "s0"), 40 * MINUTE)
    told = said(operating.post(f"{path}drops/lift/", {"query": "a"}))
    assert "after the windows that it already affects" in told
    content = operating.get(path).content.decode()
    assert "ending" in content
    assert "nothing from" in content
    values = {"percent": "70", "kind": "windows", "query": "a", "window_s": "60", "slide_s": "60",
              "batch": "2"}  # fmt: skip
    operating.post(f"{path}drops/set/", values)
    assert Drop.objects.get().value.steps[-1][1] == 0.7, "what is ending can go on"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"percent": ""}, "above 0 %"),
        ({"percent": "0"}, "above 0 %"),
        ({"percent": "101"}, "at most 100 %"),
        ({"percent": "lots"}, "lots is not a number"),
        ({"percent": "nan"}, "nan is not a number"),
        ({"percent": "5", "query": "ghost"}, "No running query ghost"),
        ({"percent": "5", "kind": "windows"}, "length of the windows"),
        ({"percent": "5", "kind": "windows", "window_s": "5", "batch": "1.5"}, "whole number"),
        ({"percent": "5", "kind": "windows", "window_s": "5", "batch": "inf"}, "is not a number"),
        ({"percent": "5", "kind": "windows", "window_s": "-1"}, "whole milliseconds"),
    ],
)
def test_what_makes_no_sense_is_told(
    operating: Client, path: str, values: dict[str, str], told: str
) -> None:
    assert told in said(operating.post(f"{path}drops/set/", values))
    assert not Drop.objects.exists()


def test_lifting_what_drops_nothing_is_told(operating: Client, path: str) -> None:
    assert "Nothing is dropped there" in said(operating.post(f"{path}drops/lift/"))


def test_the_row_counts_what_is_lost(
    operating: Client, operator: Actor, sf: Cluster, path: str
) -> None:
    drop_rules.set_drop(operator, sf.streams.get(name="s0"), DropSpec(0.3))
    lost = {str(stream_id(sf, "s0")): 2500}
    now_ms = round(timezone.now().timestamp() * 1000)
    rows = [telemetry(at, now_ms + at * 1000, dropped=lost) for at in range(1, 61)]
    ingestion.record(sf, rows)
    content = operating.get(f"{path}drops/").content.decode()
    assert "150 k" in content
    assert 'data-label="Now /s">2,4' in content
    assert '#drops">1 rule</a>' in operating.get("/clusters/sf/streams/").content.decode()


def test_a_query_shows_its_key_grouping_aggregator_and_drops(
    operating: Client, operator: Actor, sf: Cluster, split: Query
) -> None:
    drop_rules.set_drop(operator, sf.streams.get(name="s0"), DropSpec(0.3), "split")
    content = operating.get(f"/clusters/sf/queries/{split.pk}/").content.decode()
    assert split.aggregator is not None
    assert f'title="Change the aggregator nodes">{split.aggregator.name}</button>' in content
    assert 'title="Change the key grouping">Key grouping</button>' in content
    assert "30 % of s0" in content
    assert '<option value="partial_key">' in content
    assert '<option value="key" selected>' in content


def test_a_query_without_an_aggregator_says_that_it_gets_none(
    operating: Client, operator: Actor, sf: Cluster
) -> None:
    query = placed_split(operator, sf, "plain")
    content = operating.get(f"/clusters/sf/queries/{query.pk}/").content.decode()
    assert "the key grouping is fixed" in content
    assert 'id="key_grouping"' not in content


def test_the_key_grouping_changes(operating: Client, split: Query) -> None:
    page = f"/clusters/sf/queries/{split.pk}/"
    answer = operating.post(
        f"{page}key-grouping/", {"key_grouping": "partial_key", "reason": "hot"}
    )
    assert said(answer) == "The key grouping of split is Partial key grouping."
    split.refresh_from_db()
    assert split.key_grouping == "partial_key"
    assert "Must be one of" in said(operating.post(f"{page}key-grouping/", {"key_grouping": "x"}))


def test_the_numbers_of_tasks_and_aggregators_change(operating: Client, split: Query) -> None:
    page = f"/clusters/sf/queries/{split.pk}/"
    assert said(operating.post(f"{page}tasks/", {"tasks": "12"})) == "split has 12 tasks."
    answer = operating.post(f"{page}aggregators/", {"count": "2"})
    assert said(answer).endswith("split has 2 aggregator nodes.")
    split.refresh_from_db()
    assert (split.task_count, len(split.aggregators)) == (12, 2)
    content = operating.get(page).content.decode()
    names = [split.cluster.nodes.get(index=index).name for index in sorted(split.aggregators)]
    assert f'title="Change the aggregator nodes">{", ".join(names)}</button>' in content
    assert 'title="Change the number of tasks">12</button>' in content
    for field, path in (("tasks", "tasks/"), ("count", "aggregators/")):
        for text in ("", "x", "0", "9999999"):
            assert "Must be" in said(operating.post(page + path, {field: text}))


def test_the_aggregator_moves(operating: Client, operator: Actor, split: Query) -> None:
    page = f"/clusters/sf/queries/{split.pk}/"
    aggregators.set_aggregator(operator, split, 1)
    assert said(operating.post(f"{page}aggregator/", {"node": "3"})) == "split is merged on node 3."
    answer = operating.post(f"{page}aggregator/", {"node": ""})
    assert said(answer).startswith("split is merged on node ")
    split.refresh_from_db()
    assert split.aggregator is not None
    assert split.aggregator.index != 3
    for node in ("99", "x", "1" * 40):
        assert "There is no node" in said(operating.post(f"{page}aggregator/", {"node": node}))


def test_an_aggregator_that_is_not_active_is_marked(
    operating: Client, sf: Cluster, split: Query
) -> None:
    """It goes on merging until it is let off."""
    assert split.aggregator is not None
    Node.objects.filter(pk=split.aggregator.pk).update(active=False)
    content = operating.get(f"/clusters/sf/queries/{split.pk}/").content.decode()
    assert "not active" in content


def test_the_form_submits_a_key_grouping(operating: Client, sf: Cluster) -> None:
    values = {
        "name": "hot", "streams": "s0", "key": "car",
        "aggregates": "n = count(*)", "window": "60", "lateness": "0", "tasks": "8",
        "key_grouping": "partial_key",
    }  # fmt: skip
    operating.post("/clusters/sf/queries/new/", values)
    assert Query.objects.get(name="hot").key_grouping == "partial_key"
    answer = operating.post("/clusters/sf/queries/new/", values | {"name": "b2", "tasks": "1"})
    assert answer.status_code == 422
    assert "Needs more than one task" in answer.content.decode()
    assert '<option value="partial_key" selected>' in answer.content.decode()
