"""Key groupings at the terminal: the list, the options of a query, and changes."""

import pytest

from algorithms.partitioning.catalog import GROUPINGS
from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster, Query
from controlplane.topology import placement
from tests.controlplane.cli.conftest import Weir
from tests.support.cluster import placed_split

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("commands")]
SUBMIT = ("queries", "submit", "sf", "x", "--stream", "s0", "--aggregate", "n=count(*)",
          "--key", "car", "--tasks", 4)  # fmt: skip


def test_all_groupings_are_printed_with_their_effect(weir: Weir, viewer: Actor) -> None:
    shown = weir("queries", "groupings", user=viewer.name)
    assert shown.code == 0
    first = [line.split()[0] for line in shown.out.splitlines() if line.startswith(" ")]
    assert [word for word in first if word in GROUPINGS] == list(GROUPINGS)
    rows = weir("queries", "groupings", "--json", user=viewer.name).json
    assert [row["name"] for row in rows] == list(GROUPINGS)
    assert rows[0]["by_key"]
    parameters = next(row for row in rows if row["name"] == "random_choices")["parameters"]
    eps = next(item for item in parameters if item["name"] == "eps")
    assert (eps["type"], eps["default"], eps["minimum"]) == ("float", 0.01, 0.0)


def test_a_query_is_submitted_with_parameters(weir: Weir, operator: Actor, sf: Cluster) -> None:
    parameters = ("--key-grouping", "random_choices", "--key-grouping-parameter", "eps=0.05",
                  "--key-grouping-parameter", "weighted = no")  # fmt: skip
    assert weir(*SUBMIT, *parameters, user=operator.name).code == 0
    query = Query.objects.get(name="x")
    assert query.key_grouping == "random_choices"
    assert query.key_grouping_parameters == {"eps": 0.05, "weighted": False}
    row = weir("queries", "show", "sf", "x", "--json", user=operator.name).json
    assert row["key_grouping_parameters"] == {"eps": 0.05, "weighted": False}
    assert '"eps": 0.05' in weir("queries", "show", "sf", "x", user=operator.name).out


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--key-grouping-parameter", "eps=0.1"), "key_grouping_parameters: Needs a key grouping"),
        (("--key-grouping", "random_choices", "--key-grouping-parameter", "eps=much"),
         "key_grouping_parameters.eps: Must be a number"),
        (("--key-grouping", "random_choices", "--key-grouping-parameter", "eps=-1"),
         "key_grouping_parameters.eps: Must be at least 0"),
        (("--key-grouping", "partial_key", "--key-grouping-parameter", "eps=1"),
         "key_grouping_parameters.eps: Is not a parameter"),
        (("--key-grouping", "partial_key", "--key-grouping-parameter", "weighted"),
         "write NAME=VALUE"),
        (("--key-grouping", "best"), "Must be one of key, shuffle"),
    ],
)  # fmt: skip
def test_wrong_parameters_are_named(
    weir: Weir, operator: Actor, sf: Cluster, options: tuple[str, ...], fault: str
) -> None:
    refused = weir(*SUBMIT, *options, user=operator.name)
    assert refused.code == 2
    assert fault in refused.err
    assert not Query.objects.filter(name="x").exists()


def test_the_grouping_of_a_running_query_changes(
    weir: Weir, operator: Actor, viewer: Actor, sf: Cluster
) -> None:
    query = placed_split(operator, sf, key_grouping="key")
    change = ("queries", "key-grouping", "sf", "q", "random_choices")
    done = weir(*change, "--param", "eps=0.05", "--reason", "a hot car", user=operator.name)
    assert done.code == 0, done.err
    query.refresh_from_db()
    assert (query.key_grouping, query.key_grouping_parameters) == ("random_choices", {"eps": 0.05})
    assert AuditEntry.objects.get(action="query.key_grouping").reason == "a hot car"
    row = weir(*change, "--json", user=operator.name).json
    assert (row["key_grouping"], row["key_grouping_parameters"]) == ("random_choices", {})
    assert weir(*change, "--param", "eps", user=operator.name).code == 2
    assert weir(*change, "--param", "odd=1", user=operator.name).code == 2
    assert weir(*change, user=viewer.name).code == 4
    placed_split(operator, sf, "plain")
    placement.place_pending(sf.pk)
    assert weir("queries", "key-grouping", "sf", "plain", "key", user=operator.name).code == 1
