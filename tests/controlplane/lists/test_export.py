"""Exports of lists: all filtered rows, bounded, without formulas."""

import csv
import io
import json
from datetime import UTC, datetime

import pytest

from controlplane.access import audit
from controlplane.access.roles import Actor
from controlplane.lists.export import csv_parts, json_parts
from controlplane.lists.kinds import KINDS, ListScope
from controlplane.models import Cluster, Decision, Proposal
from controlplane.pagination.columns import file_columns
from controlplane.pagination.listing import Listing
from tests.support import cluster as made


@pytest.fixture
def scope(operator: Actor) -> ListScope:
    cluster = made.small_cluster(operator)
    made.placed(operator, cluster, {"a": ["s0"], "b": ["s0", "s1"]})
    moment = datetime(2026, 11, 24, 10, 30, tzinfo=UTC)
    Decision.objects.create(
        cluster=cluster, loop="skew", code="within", text="=1+1", first_at=moment, last_at=moment
    )
    Proposal.objects.create(
        cluster=cluster, planner="placement", algorithm="mms", requested_by="@ann",
        requested_at=moment, predicted={"actions": 3},
    )  # fmt: skip
    audit.record(operator, "query.end", "+a", cluster=cluster, before={"names": ["a"]})
    return ListScope(operator, cluster)


@pytest.mark.parametrize("name", list(KINDS))
def test_every_list_is_exported_with_its_columns(scope: ListScope, name: str) -> None:
    kind = KINDS[name]
    listing = kind.rows(scope, {})
    header, *lines = csv.reader(io.StringIO("".join(csv_parts(listing, kind.columns))))
    body = json.loads("".join(json_parts(listing, kind.columns)))
    assert header == [column.file_name for column in file_columns(kind.columns)]
    assert len(lines) == len(body["rows"]) == len(listing.page.rows) > 0
    assert all(list(row) == header for row in body["rows"])
    assert body["is_complete"]
    assert not [cell for line in lines for cell in line if cell.startswith(("=", "+", "@"))]


def test_an_export_is_bounded(scope: ListScope) -> None:
    kind = KINDS["streams"]
    listing: Listing[Cluster, Cluster] = kind.rows(scope, {"order": "-name"})
    assert len(list("".join(csv_parts(listing, kind.columns, most=4)).splitlines())) == 5
    body = json.loads("".join(json_parts(listing, kind.columns, most=4)))
    assert [row["name"] for row in body["rows"]] == ["s5", "s4", "s3", "s2"]
    assert not body["is_complete"]
