"""Every measure of the pages has a definition; the tag shows it as a button, or inside a link."""

import re

import pytest
from django.test import Client

from controlplane.alerts.measures import KINDS
from controlplane.models import Cluster, Query
from dashboard.glossary import WORDS, term_of
from dashboard.templatetags.terms import term

# Tiles that count or name something.
_WITHOUT: set[str] = {"Queries", "Age of data"}


def test_measures_of_clusters_have_a_definition() -> None:
    assert {kind.title for kind in KINDS.values() if term_of(kind.title) is None} <= _WITHOUT


@pytest.mark.parametrize("path", ["", "nodes/0/", "queries/{}/"])
def test_tiles_of_pages_have_a_definition(operating: Client, sf: Cluster, path: str) -> None:
    query = Query.objects.filter(cluster=sf)[0]
    html = operating.get(f"/clusters/sf/{path.format(query.pk)}").content.decode()
    titles = re.findall(r'class="tile[^>]*><span class="name">([^<]+)', html)
    assert set(titles) <= _WITHOUT, titles
    assert html.count("data-term=") >= 4


def test_no_label_has_two_definitions() -> None:
    labels = [label.lower() for word in WORDS for label in {word.word, *word.labels}]
    folded = {word.word.lower() for word in WORDS}
    assert len(folded) == len(WORDS)
    twice = {label for label in labels if labels.count(label) > 1}
    assert all(term_of(label) is not None and label in folded for label in twice), twice


def test_a_label_is_a_button_unless_a_link_contains_it() -> None:
    assert term("Imbalance").startswith('<button type="button" class="term" data-term="')
    assert term("Imbalance", in_link=True).startswith('<span class="term" data-term="')
    assert term("<Rows>") == "&lt;Rows&gt;"
