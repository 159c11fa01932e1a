"""The key grouping of a query and its parameters: in the form of a query, and in the dialog."""

import re
from typing import Any

import pytest
from django.test import Client

from algorithms.partitioning.catalog import GROUPINGS, fields_of
from controlplane.access.roles import Actor
from controlplane.models import Cluster, Query
from controlplane.queries.spec import QuerySpec
from controlplane.topology import placement, queries
from controlplane.wire.query_text import QueryText
from dashboard.queries.forms import DEFAULTS
from dashboard.queries.key_grouping_forms import grouping_choices, grouping_values, parameters_of
from tests.support.cluster import placed_split

pytestmark = pytest.mark.nightly("pages")

QUERY = {**DEFAULTS, "name": "hot", "streams": "s0", "key": "car", "aggregates": "n = count(*)",
         "tasks": "8"}  # fmt: skip
NEW = "/clusters/sf/queries/new/"
CHECK = "/clusters/sf/queries/check/"
HTMX = {"HX-Request": "true"}
# As a browser sends them: "weighted" is a box that is not ticked.
ROOMY = {"key_grouping": "random_choices", "random_choices.": "1", "random_choices.eps": "0.05",
         "random_choices.seed": ""}  # fmt: skip


def choice_of(name: str, values: dict[str, str]) -> dict[str, Any]:
    (choice,) = [one for one in grouping_choices(name, values) if one["is_chosen"]]
    return choice


def chosen(name: str, values: dict[str, str]) -> dict[str, Any]:
    fields = choice_of(name, values)["fields"]
    return {one["field"].name.rpartition(".")[2]: one["value"] for one in fields}


def test_the_parameters_of_the_chosen_grouping_are_read() -> None:
    others = {"partial_key.": "1", "partial_key.weighted": "true", "bounded_load.eps": "x"}
    assert parameters_of(ROOMY | others) == ({"eps": 0.05, "weighted": False}, {})
    ticked = ROOMY | {"random_choices.weighted": "true"}
    assert parameters_of(ticked)[0]["weighted"] is True
    assert parameters_of({"key_grouping": "random_choices"}) == ({}, {}), "no field, all defaults"
    assert parameters_of({"key_grouping": ""}) == parameters_of({}) == ({}, {})
    values, faults = parameters_of(ROOMY | {"random_choices.eps": "much"})
    assert (values, list(faults)) == ({}, ["key_grouping_parameters.eps"])


@pytest.mark.parametrize("name", GROUPINGS)
def test_the_form_of_a_grouping_is_read_as_it_is_shown(name: str) -> None:
    """With its defaults, and with the parameters of a query."""
    defaults = {field.name: field.default for field in fields_of(name)}
    for own in ({}, {"weighted": not defaults["weighted"]}):
        query = Query(key_grouping=name, key_grouping_parameters=own)
        values = grouping_values(query)
        given, faults = parameters_of(values)
        assert not faults
        assert defaults | given == defaults | own
        shown = chosen(name, values)
        assert choice_of(name, values)["is_changed"] is bool(own)
        assert shown["weighted"] is (defaults | own)["weighted"]
    assert shown.keys() == defaults.keys()


def test_a_join_is_offered_the_plain_key() -> None:
    (choice,) = grouping_choices("key", {}, joins=True)
    assert (choice["info"].name, choice["fields"]) == ("key", [])


def test_a_query_is_submitted_with_parameters(operating: Client, sf: Cluster) -> None:
    assert operating.post(NEW, QUERY | ROOMY).status_code == 302
    query = Query.objects.get(name="hot")
    assert query.key_grouping == "random_choices"
    assert query.key_grouping_parameters == {"eps": 0.05, "weighted": False}


@pytest.mark.parametrize(
    ("eps", "fault"), [("-1", "Must be at least 0"), ("much", "Must be a number")]
)
def test_a_wrong_parameter_has_its_fault_beside_the_parameters(
    operating: Client, sf: Cluster, eps: str, fault: str
) -> None:
    """In the answer to the submission, which keeps what was written, and in the live check."""
    given = QUERY | ROOMY | {"random_choices.eps": eps}
    answer = operating.post(NEW, given)
    content = answer.content.decode()
    assert answer.status_code == 422
    faults = content[content.index('id="faults-key_grouping_parameters"') :]
    assert f"<b>Uneven load allowed</b>: {fault}" in faults[: faults.index("</div>")]
    assert re.search(rf'name="random_choices\.eps"[^>]* value="{eps}"', content)
    checked = operating.post(CHECK, given | {"field": "text"}, headers=HTMX).content.decode()
    assert fault in checked
    assert not Query.objects.filter(name="hot").exists()


def test_every_grouping_is_shown_with_its_effect_and_parameters(
    operating: Client, sf: Cluster
) -> None:
    """Also without a script, which shows those of the chosen one only."""
    content = operating.get(NEW).content.decode()
    for info in GROUPINGS.values():
        assert f'data-choice="{info.name}"' in content
        assert info.about in content.replace("&#x27;", "'")
        for field in fields_of(info.name):
            assert f'name="{info.name}.{field.name}"' in content
            assert f'<label for="p-{info.name}.{field.name}">{field.title}' in content


def test_the_dialog_changes_the_parameters(operating: Client, operator: Actor, sf: Cluster) -> None:
    query = placed_split(operator, sf, key_grouping="key")
    page = f"/clusters/sf/queries/{query.pk}/"
    operating.post(f"{page}key-grouping/", ROOMY | {"reason": "hot"})
    query.refresh_from_db()
    assert query.key_grouping_parameters == {"eps": 0.05, "weighted": False}
    content = operating.get(page).content.decode()
    label = "Power of random choices (uneven load allowed = 0.05, use the capacities = no)"
    assert label in content
    assert re.search(r'name="random_choices\.eps"[^>]* value="0\.05"', content)


def test_the_dialog_shows_a_fault_and_keeps_what_was_written(
    operating: Client, operator: Actor, sf: Cluster
) -> None:
    query = placed_split(operator, sf, key_grouping="key")
    path = f"/clusters/sf/queries/{query.pk}/key-grouping/"
    for eps in ("-3", "much"):
        given = ROOMY | {"random_choices.eps": eps, "reason": "hot keys"}
        answer = operating.post(path, given, headers=HTMX)
        content = answer.content.decode()
        assert answer.status_code == 422
        assert "<b>Uneven load allowed</b>: Must be" in content
        assert re.search(rf'name="random_choices\.eps"[^>]* value="{eps}"', content)
        assert '<option value="random_choices" selected>' in content
        assert 'value="hot keys"' in content
    query.refresh_from_db()
    assert query.key_grouping == "key"


def test_the_dialog_of_a_join_offers_the_plain_key(
    operating: Client, operator: Actor, sf: Cluster
) -> None:
    text = QueryText({"n": "count(*)"}, key=("a.car",), on=(("car", "car"),))
    spec = QuerySpec("j", ("s0",), text, tasks=4, right=("s1",), key_grouping="key")
    query = queries.submit(operator, sf, spec)
    placement.place_pending(sf.pk)
    page = f"/clusters/sf/queries/{query.pk}/"
    content = operating.get(page).content.decode()
    assert '<option value="key" selected>' in content
    assert '<option value="partial_key">' not in content
    answer = operating.post(f"{page}key-grouping/", {"key_grouping": "shuffle"}, headers=HTMX)
    content = answer.content.decode()
    assert "must meet in one task" in content
    assert '<option value="partial_key">' not in content
