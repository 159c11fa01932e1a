"""The key microscope of a query: page, fragments, empty states, buttons by role."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from redis import RedisError

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Query
from controlplane.planners.partitioning.key_report import KeyReport
from controlplane.policies.store import policy_of
from controlplane.telemetry.series import start_of
from dashboard.queries import keys
from tests.support import cluster as made
from tests.support.key_reports import key_report
from tests.support.series import add_skews

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}
Give = Callable[[KeyReport | RedisError], None]


@pytest.fixture
def split(operator: Actor) -> Query:
    """A query over eight tasks with an aggregator."""
    cluster = made.small_cluster(operator, nodes=8)
    Cluster.objects.update(desired="running", state="running")
    return made.placed_split(operator, cluster, "errors-by-path", "two_choices")


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Give:
    """Give the page this report."""

    def given(report: KeyReport | RedisError) -> None:
        def read(query: Query) -> KeyReport:
            if isinstance(report, RedisError):
                raise report
            return replace(report, query=query.name)

        monkeypatch.setattr(keys, "read_key_report", read)

    return given


def page_of(query: Query, part: str = "") -> str:
    return f"/clusters/sf/queries/{query.pk}/keys/{part}"


def marked(content: str, name: str) -> str:
    """Return the opening tag of the element with an id."""
    start = content.index(f'id="{name}"')
    return content[content.rindex("<", 0, start) : content.index(">", start)]


def test_the_page_has_all_parts(operating: Client, split: Query, give: Give) -> None:
    give(key_report())
    answer = operating.get(page_of(split))
    content = answer.content.decode()
    parts = ("finding", "tiles", "shares", "places", "groupings", "history")
    assert all(f'id="key-{part}"' in content for part in parts)
    assert 'data-grade="warn"' in marked(content, "key-finding")
    assert answer.context["status"].fullest.title == "node 3"
    assert content.count("<tr") > 30
    replays = [card.replay for card in answer.context["charts"].cards]
    assert [replay.name for replay in replays if replay.recommended] == ["head_aware"]
    assert f'href="/clusters/sf/queries/{split.pk}/"' in content


def test_the_query_links_to_its_keys(operating: Client, split: Query) -> None:
    content = operating.get(f"/clusters/sf/queries/{split.pk}/").content.decode()
    assert f'href="{page_of(split)}"' in content


def test_the_page_of_the_query_says_that_it_is_skewed(operating: Client, split: Query) -> None:
    """Its headline agrees with its keys, and with the monitor of skew."""
    url = f"/clusters/sf/queries/{split.pk}/"
    assert operating.get(url).context["headline"].chip == "running"
    add_skews(split, [(start_of(datetime.now(UTC) - timedelta(seconds=30), 10), 0.6)])
    shown = operating.get(url).context["headline"]
    assert (shown.chip, shown.grade) == ("skewed", "warn")


def test_live_parts_replace_their_elements(operating: Client, split: Query, give: Give) -> None:
    give(key_report())
    headers = HTMX | {"HX-Target": "key-status"}
    content = operating.get(page_of(split, "live/"), headers=headers).content.decode()
    for part in ("key-tiles", "key-shares", "key-places", "key-places-note"):
        assert "hx-swap-oob" in marked(content, part)
    assert "hx-swap-oob" not in operating.get(page_of(split)).content.decode()
    assert "<html" not in content


@pytest.mark.parametrize("part", ["groupings/", "history/"])
def test_slower_parts_are_fragments(operating: Client, split: Query, give: Give, part: str) -> None:
    give(key_report())
    answer = operating.get(page_of(split, part), headers=HTMX)
    assert answer.status_code == 200
    assert "<html" not in answer.content.decode()


def test_charts_come_as_json(operating: Client, split: Query, give: Give) -> None:
    give(key_report())
    figures = operating.get(page_of(split, "charts.json")).json()["figures"]
    assert set(figures) == {"skew", "imbalance"}
    give(RedisError())
    figures = operating.get(page_of(split, "charts.json")).json()["figures"]
    assert set(figures) == {"skew", "imbalance"}, "the history is in the database"


def test_the_history_follows_the_time_range(operating: Client, split: Query, give: Give) -> None:
    give(key_report())
    now = datetime.now(UTC)
    recorded(split, now, 5, 60, 700)
    last = operating.get(page_of(split))
    assert [row["point"].top_share for row in last.context["history"]] == [0.005, 0.06]
    stop, start = (round(1000 * (now - timedelta(minutes=m)).timestamp()) for m in (30, 800))
    past = operating.get(page_of(split), {"from": start, "to": stop})
    assert [row["point"].top_share for row in past.context["history"]] == [0.06, 0.7]
    content = past.content.decode()
    assert f"charts.json?from={start}" in content
    assert 'data-every="weir:sample"' not in content


def recorded(query: Query, now: datetime, *minutes: int) -> None:
    """Record the skew so many minutes ago; the largest share is a thousandth of the minutes."""
    for before in minutes:
        add_skews(query, [(now - timedelta(minutes=before), 0.1)], top_share=before / 1000)


def test_an_ended_query_shows_the_history_before_its_end(
    operating: Client, split: Query, give: Give
) -> None:
    """By default the hours before the end, not those before now."""
    give(KeyReport(split.name, None, 600))
    now = datetime.now(UTC)
    Query.objects.update(
        state="ended", ended_at=now - timedelta(hours=10), placed_at=now - timedelta(hours=20)
    )
    without = operating.get(page_of(split)).content.decode()
    assert 'id="key-history"' not in without
    assert "data-figures" not in without
    recorded(split, now, 5, 620, 630)
    answer = operating.get(page_of(split))
    content = answer.content.decode()
    assert answer.context["empty"] == "not_live"
    assert [row["point"].top_share for row in answer.context["history"]] == [0.62, 0.63]
    assert 'data-figure="skew"' in content
    assert 'data-figure="imbalance"' in content
    assert 'data-every="weir:sample"' not in content
    charts = operating.get(f"{page_of(split, 'charts.json')}?{answer.context['span'].query}")
    drawn = charts.json()["figures"]["skew"]
    assert drawn["data"][0]["y"] == [0.63, 0.62]
    later = operating.get(page_of(split), {"range": "6h"})
    assert [row["point"].top_share for row in later.context["history"]] == [0.005]


def test_old_samples_are_muted(operating: Client, split: Query, give: Give) -> None:
    give(key_report(datetime.now(UTC) - timedelta(seconds=40)))
    answer = operating.get(page_of(split))
    assert answer.context["age_grade"] == "warn"
    assert "stale" in marked(answer.content.decode(), "key-tiles")


def empty_of(client: Client, query: Query) -> Any:
    answer = client.get(page_of(query))
    assert answer.status_code == 200
    assert f'data-reason="{answer.context["empty"]}"' in answer.content.decode()
    return answer.context["empty"]


def test_empty_pages_name_their_reason(operating: Client, split: Query, give: Give) -> None:
    nothing = KeyReport(split.name, None, 600, tasks=key_report().tasks)
    give(nothing)
    assert empty_of(operating, split) == "waiting"
    Cluster.objects.update(desired="stopped")
    assert empty_of(operating, split) == "stopped"
    Query.objects.update(state="pending")
    assert empty_of(operating, split) == "pending"
    Query.objects.update(state="ended")
    assert empty_of(operating, split) == "not_live"
    give(RedisError())
    assert empty_of(operating, split) == "redis_away"
    Query.objects.update(task_count=1, state="running")
    assert empty_of(operating, split) == "one_task"
    Query.objects.update(state="ended")
    give(nothing)
    assert empty_of(operating, split) == "not_live"
    assert b"Exclude from plans" not in operating.get(page_of(split)).content


@pytest.mark.parametrize(
    ("target", "sampled", "status"),
    [("key-empty", True, 200), ("key-empty", False, 204), ("key-status", True, 200)],
)
def test_the_page_is_loaded_again_when_the_first_sample_arrives(
    operating: Client, split: Query, give: Give, target: str, *, sampled: bool, status: int
) -> None:
    give(key_report() if sampled else KeyReport(split.name, None, 600))
    answer = operating.get(page_of(split, "live/"), headers=HTMX | {"HX-Target": target})
    assert answer.status_code == status
    assert ("HX-Refresh" in answer.headers) == (sampled and target == "key-empty")


def test_the_page_is_loaded_again_when_the_samples_expire(
    operating: Client, split: Query, give: Give
) -> None:
    give(KeyReport(split.name, None, 600))
    answer = operating.get(page_of(split, "live/"), headers=HTMX | {"HX-Target": "key-status"})
    assert "HX-Refresh" in answer.headers


def test_viewers_have_no_buttons(
    operating: Client, viewing: Client, split: Query, give: Give
) -> None:
    give(key_report())
    assert 'popovertarget="key_grouping"' in operating.get(page_of(split)).content.decode()
    content = viewing.get(page_of(split)).content.decode()
    assert re.findall(r'method="post" action="([^"]*)"', content) == ["/logout/"]
    assert 'id="key-buttons"' not in content
    assert 'id="key_grouping" popover' not in content


def test_labels_of_keys_are_escaped(operating: Client, split: Query, give: Give) -> None:
    keys = [replace(key, label="<script>") for key in key_report().keys]
    give(key_report(keys=keys))
    assert "<script>" not in operating.get(page_of(split)).content.decode()


def test_a_fixed_grouping_locks_the_buttons(
    operating: Client, operator: Actor, sf: Cluster, give: Give
) -> None:
    query = made.placed_split(operator, sf, "fixed", "")
    give(key_report())
    content = operating.get(page_of(query)).content.decode()
    assert 'popovertarget="key_grouping"' not in content
    assert 'id="fixed-grouping"' in content


def test_a_plan_is_requested_for_the_limit_of_the_policy(
    operating: Client, split: Query, give: Give
) -> None:
    give(key_report())
    context = operating.get(page_of(split)).context
    fields = {item["field"].name: item["value"] for item in context["fields"]}
    sent = {name: "true" if value is True else value for name, value in fields.items() if value}
    sent |= {"planner": "partitioning", "algorithm": context["algorithm"].name}
    operating.post("/clusters/sf/proposals/ask/", sent)
    proposal = split.cluster.proposals.get()
    assert (proposal.planner, proposal.algorithm) == ("partitioning", context["algorithm"].name)
    wanted = {item["field"].name: item["field"].default for item in context["fields"]}
    assert {name: proposal.parameters[name] for name in wanted} == wanted
    assert proposal.parameters["limit"] == policy_of(split.cluster).watch_skew / 2
