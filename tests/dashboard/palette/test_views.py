"""The palette offers objects, pages and commands that its user may open."""

import pytest
from django.test import Client

from controlplane.models import Cluster
from dashboard.palette.views import marked

pytestmark = pytest.mark.nightly("pages")


def options(client: Client, text: str, cluster: str = "sf") -> str:
    answer = client.get("/search/", {"text": text, "cluster": cluster}, headers={"HX-Request": "1"})
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_node_brings_its_explanation_and_queries(operating: Client, sf: Cluster) -> None:
    html = options(operating, "node 2")
    assert 'href="/clusters/sf/nodes/2/"' in html
    assert 'href="/clusters/sf/explain/?subject=node:2"' in html
    assert 'href="/clusters/sf/queries/?node=2"' in html
    assert "<mark>node</mark> <mark>2</mark>" in html


def test_without_a_text_it_lists_pages_and_commands(operating: Client, sf: Cluster) -> None:
    html = options(operating, "")
    assert 'href="/clusters/sf/streams/"' in html
    assert 'href="/clusters/sf/queries/new/"' in html
    assert 'data-run="theme-dark"' in html
    assert "/queries/new/" not in options(operating, "", cluster="")


def test_the_best_match_comes_first_and_the_lab_last_of_equal_ones(
    operating: Client, sf: Cluster
) -> None:
    html = options(operating, "que")
    page, lab = html.index('href="/clusters/sf/queries/"'), html.index('href="/lab/')
    assert page < lab


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("slow", "/clusters/sf/?explain=measure:latency_p95"),
        ("scenario", "/clusters/sf/#scenario-list"),
        ("help", "/help/"),
        ("settings", "/clusters/sf/policy/"),
        ("rebalance", "/clusters/sf/proposals/#request"),
    ],
)
def test_the_words_of_operators_find_what_they_look_for(
    operating: Client, sf: Cluster, text: str, address: str
) -> None:
    assert f'href="{address}"' in options(operating, text)


def test_commands_follow_the_role(viewing: Client, sf: Cluster) -> None:
    html = options(viewing, "")
    assert "/queries/new/" not in html
    assert "#request" not in html
    assert 'href="/grants/"' not in html


def test_nothing_found_is_said_with_what_can_be_searched(operating: Client, sf: Cluster) -> None:
    assert "Nothing has this name" in options(operating, "no such thing")


def test_an_unknown_cluster_is_404(operating: Client, sf: Cluster) -> None:
    assert operating.get("/search/", {"cluster": "x"}).status_code == 404
    assert operating.get("/search/", {"text": "x" * 500}).status_code == 422


def test_names_are_escaped() -> None:
    assert marked("<b>a</b>", ["a"]) == "&lt;b&gt;<mark>a</mark>&lt;/b&gt;"
