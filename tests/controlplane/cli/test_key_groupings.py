"""Key groupings at the terminal: the list, the options of a query, and changes."""

import pytest

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Query
from tests.controlplane.cli.conftest import Weir

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly("commands")]
SUBMIT = ("queries", "submit", "sf", "x", "--stream", "s0", "--aggregate", "n=count(*)",
          "--key", "car", "--tasks", 4)  # fmt: skip


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
