"""How long windows are kept is said at submission, and changed by whoever may."""

import json

import pytest
from django.test import Client

from controlplane.access import tokens
from controlplane.access.roles import Actor
from controlplane.catalog import query_settings
from controlplane.cli.main import main
from controlplane.cluster_spec.export import description_of
from controlplane.errors import Invalid
from controlplane.models import AuditEntry, Cluster, Query
from controlplane.queries.spec import QuerySpec
from controlplane.topology import queries
from controlplane.wire.query_text import QueryText

TEXT = QueryText({"n": "count(*)"}, key=("stream",))
PATH = "/api/v1/clusters/sf/queries"


def kept(query: Query) -> tuple[int, int]:
    query.refresh_from_db()
    return query.retention_s, query.retention_windows


def test_retention_is_said_at_submission(operator: Actor, sf: Cluster) -> None:
    spec = QuerySpec("q", ("s0",), TEXT, retention_s=3_600, retention_windows=500)
    assert kept(queries.submit(operator, sf, spec)) == (3_600, 500)
    plain = queries.submit(operator, sf, QuerySpec("p", ("s0",), TEXT))
    assert kept(plain) == (604_800, 1_000_000)
    wrong = QuerySpec("w", ("s0",), TEXT, retention_s=5, retention_windows=0)
    with pytest.raises(Invalid) as refused:
        queries.submit(operator, sf, wrong)
    assert set(refused.value.fields) == {"retention_s", "retention_windows"}


def test_retention_is_changed(operator: Actor, sf: Cluster) -> None:
    query = queries.submit(operator, sf, QuerySpec("q", ("s0",), TEXT))
    query_settings.set_retention(operator, query, seconds=7_200, reason="disk")
    assert kept(query) == (7_200, 1_000_000)
    entry = AuditEntry.objects.get(action="query.retain")
    assert (entry.after["retention_s"], entry.reason) == (7_200, "disk")
    with pytest.raises(Invalid):
        query_settings.set_retention(operator, query, windows=10**12)


def test_api_cli_and_description_have_it(
    operator: Actor, sf: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tokens.create(operator.user, "test")  # type: ignore[arg-type]
    client = Client(headers={"authorization": f"Bearer {token}"})
    body = {"name": "q", "streams": ["s0"], "text": {"aggregates": {"n": "count(*)"}},
            "retention_s": 86_400}  # fmt: skip
    made = client.post(PATH, json.dumps(body), content_type="application/json")
    assert (made.status_code, made.json()["retention_s"]) == (201, 86_400)
    changed = client.post(
        f"{PATH}/q/retention", json.dumps({"retention_windows": 9}), content_type="application/json"
    )
    assert (changed.json()["retention_s"], changed.json()["retention_windows"]) == (86_400, 9)
    call = ["queries", "retain", "sf", "q", "--seconds", "600", "--as", operator.name, "--json"]
    assert main(call) == 0
    assert json.loads(capsys.readouterr().out)["retention_s"] == 600
    (part,) = description_of(sf).queries
    assert (part.retention_s, part.retention_windows) == (600, 9)
