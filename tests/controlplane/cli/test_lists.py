"""Clusters, streams and queries at the terminal: tables for people, JSON for scripts."""

import json
from pathlib import Path

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster, DriverRestart, Grant, Incident, Query
from tests.controlplane.cli.conftest import Weir
from tests.support.cluster import actor

pytestmark = pytest.mark.django_db(transaction=True)


def test_clusters(weir: Weir, viewer: Actor, cluster: Cluster) -> None:
    assert "sf" in weir("clusters", "list", user=viewer.name).out
    (row,) = weir("clusters", "list", "--json", user=viewer.name).json
    assert (row["slug"], row["running"], row["nodes"], row["active_nodes"]) == ("sf", 12, 4, 4)
    nodes = weir("nodes", "list", "sf", "--json", user=viewer.name).json
    assert [node["queries"] for node in nodes] == [3, 3, 3, 3]
    assert "node 3" in weir("nodes", "list", "sf", user=viewer.name).out
    assert weir("clusters", "show", "sf", "--json", user=viewer.name).json["slots"] == 4


def test_starting_and_stopping_takes_an_operator(
    weir: Weir, viewer: Actor, operator: Actor, cluster: Cluster
) -> None:
    assert weir("clusters", "stop", "sf", "--reason", "night", user=operator.name).code == 0
    cluster.refresh_from_db()
    assert cluster.desired == "stopped"
    entry = AuditEntry.objects.get(action="cluster.stop")
    assert (entry.actor, entry.reason) == (operator.name, "night")
    assert entry.request.startswith("weir by ")
    refused = weir("clusters", "start", "sf", user=viewer.name)
    assert (refused.code, refused.out) == (4, "")
    assert "role operator" in refused.err
    assert "what to do" in refused.err


def test_streams(weir: Weir, viewer: Actor, cluster: Cluster) -> None:
    found = weir(
        "streams", "list", "sf", "--order", "rate", "--reverse", "--json", user=viewer.name
    ).json
    assert [row["name"] for row in found["streams"]] == ["s5", "s4", "s3", "s2", "s1", "s0"]
    told = weir("streams", "list", "sf", "--limit", 2, user=viewer.name).out
    assert "more of 6: --cursor " in told


def test_queries_are_submitted_listed_and_ended(
    weir: Weir, operator: Actor, cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "queries.yaml"
    text = "text: {aggregates: {n: count(*)}}"
    file.write_text(
        f"queries: [{{name: x1, streams: [s0], {text}}}, {{name: x2, streams: [s0, s1], {text}}}]\n"
    )
    by = {"user": operator.name}
    given = ("--stream", "s0", "--aggregate", "n=count(*)", "--aggregate", "high = max(x)",
             "--key", "stream", "--where", "x = 3", "--window", 2.5)  # fmt: skip
    assert weir("queries", "submit", "sf", "x0", *given, **by).code == 0
    assert weir("queries", "show", "sf", "x0", "--json", **by).json["text"] == {
        "aggregates": {"n": "count(*)", "high": "max(x)"},
        "window_s": 2.5,
        "where": "x = 3",
        "key": ["stream"],
    }
    saved = weir("queries", "submit", "sf", "--input", file, "--json", **by).json
    assert saved == {"count": 2, "names": ["x1", "x2"]}
    found = weir("queries", "list", "sf", "--search", "x", "--json", **by).json
    assert {row["name"] for row in found["queries"]} == {"x0", "x1", "x2"}
    assert weir("queries", "show", "sf", "x2", "--json", **by).json["streams"] == ["s0", "s1"]
    assert "s0, s1" in weir("queries", "show", "sf", "x2", **by).out
    assert weir("queries", "end", "sf", "x0", "x1", "--json", **by).json == {"count": 2}
    assert Query.objects.filter(name__startswith="x", state="pending").count() == 1
    assert "x2" in weir("queries", "list", "sf", "--state", "pending", **by).out


def test_a_query_is_submitted_with_a_retention(
    weir: Weir, operator: Actor, cluster: Cluster
) -> None:
    by = {"user": operator.name}
    given = ("--stream", "s0", "--aggregate", "n=count(*)")
    kept = ("--retention", 86_400, "--retention-windows", 500)
    assert weir("queries", "submit", "sf", "day", *given, *kept, **by).code == 0
    assert weir("queries", "submit", "sf", "week", *given, "--retention-windows", 9, **by).code == 0
    found = Query.objects.filter(name__in=["day", "week"]).order_by("name")
    rows = list(found.values_list("retention_s", "retention_windows"))
    assert rows == [(86_400, 500), (604_800, 9)]
    refused = weir("queries", "submit", "sf", "short", *given, "--retention", 5, **by)
    assert refused.code == 2
    assert "retention_s: Must be 60 to" in refused.err


def test_a_bulk_with_a_fault_is_refused_with_its_place(
    weir: Weir, operator: Actor, cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "queries.json"
    text = {"aggregates": {"n": "count(*)"}}
    rows = [{"name": n, "streams": [s], "text": text} for n, s in (("x", "s0"), ("y", "s99"))]
    file.write_text(json.dumps({"queries": rows}))
    refused = weir("queries", "submit", "sf", "--input", file, user=operator.name)
    assert refused.code == 2
    assert "queries[1].streams: There is no stream s99" in refused.err
    assert not Query.objects.filter(name="x").exists()


def test_names_of_any_length_fit_the_terminal(
    weir: Weir, operator: Actor, cluster: Cluster
) -> None:
    for name in ("q" * 100, "w-" * 30):
        given = ("--stream", "s0", "--aggregate", "n=count(*)")
        assert weir("queries", "submit", "sf", name, *given, user=operator.name).code == 0
    told = weir("queries", "list", "sf", user=operator.name).out
    assert "".join(told.split()).count("q" * 20) >= 1
    weir("queries", "show", "sf", "q" * 100, user=operator.name)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("clusters", "show", "nix"), 3, "weir clusters list"),
        (("queries", "show", "sf", "nix"), 3, "There is no query nix"),
        (("queries", "list", "sf", "--state", "odd"), 2, "invalid choice"),
        (("queries", "submit", "sf"), 2, "name one query"),
        (("queries", "submit", "sf", "x", "--stream", "s0"), 2, "text.aggregates"),
        (("queries", "submit", "sf", "x", "--aggregate", "count(*)"), 2, "NAME=EXPRESSION"),
        (("queries", "submit", "sf", "--input", "/nix"), 3, "/nix: No such file"),
        (("clusters",), 2, "required"),
        (("odd",), 2, "invalid choice"),
        (("proposals", "approve", "1"), 2, "--seal"),
        (("proposals", "reject", "1"), 2, "--reason"),
        (("proposals", "show", "4711"), 3, "There is no proposal 4711"),
    ],
)
def test_refusals_say_what_and_what_to_do(
    weir: Weir, operator: Actor, cluster: Cluster, words: tuple[str, ...], code: int, told: str
) -> None:
    needs_user = len(words) > 1
    refused = weir(*words, user=operator.name if needs_user else "")
    assert refused.code == code
    assert told in refused.err
    assert refused.err.startswith("weir: ")
    assert refused.out == ""


def test_who_is_nobody_is_told_so(
    weir: Weir, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The login name counts where no user is named; WEIR_USER goes before it."""
    refused = weir("clusters", "list", user="nobody-here")
    assert refused.code == 4
    assert "no active user nobody-here" in refused.err
    actor("", "idle")
    monkeypatch.setenv("WEIR_USER", "idle")
    assert weir("clusters", "list").code == 4
    # Clusters that are hidden from a user do not exist for them.
    assert weir("clusters", "show", "sf").code == 3
    actor("viewer", "login")
    monkeypatch.delenv("WEIR_USER")
    monkeypatch.setattr("getpass.getuser", lambda: "login")
    assert weir("clusters", "list").code == 0


def test_who_may_see_one_cluster_sees_one(weir: Weir, operator: Actor, cluster: Cluster) -> None:
    other = Cluster.objects.create(slug="other", name="Other", slots=1)
    guest = actor("", "guest")
    assert isinstance(guest.user.pk, int)
    Grant.objects.create(
        user_id=guest.user.pk, cluster=other, role="viewer", granted_at=other.created_at
    )
    rows = weir("clusters", "list", "--json", user="guest").json
    assert [row["slug"] for row in rows] == ["other"]
    assert weir("queries", "list", "sf", user="guest").code == 3


def test_health_and_decisions(weir: Weir, viewer: Actor, cluster: Cluster) -> None:
    now = timezone.now()
    DriverRestart.objects.create(cluster=cluster, at=now, cause="memory", batch=812, detail="heap")
    row = Incident.objects.create(
        cluster=cluster, at=now, kind="database-older", state="undecided", lost=["Versions 8 to 9"],
        choices=["adopt-database", "stop"], facts={"version": 9},
    )  # fmt: skip
    told = weir("clusters", "health", "sf", user=viewer.name).out
    assert "812" in told
    assert "Versions 8 to 9" in told
    found = weir("clusters", "health", "sf", "--json", user=viewer.name).json
    assert (found["restarts"][0]["cause"], found["incidents"][0]["id"]) == ("memory", row.pk)
    refused = weir("clusters", "decide", "sf", str(row.pk), "stop", user=viewer.name)
    assert refused.code == 4
    admin = actor("admin", "root-of-sf")
    assert weir("clusters", "decide", "sf", str(row.pk), "stop", user=admin.name).code == 0
    row.refresh_from_db()
    assert row.decision == "stop"
