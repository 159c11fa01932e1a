"""From the question to the plan to its end, by nothing but the command."""

import threading
from pathlib import Path

import pytest
from django.db import connection

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Proposal
from controlplane.proposals.executions import control, progression
from tests.controlplane.cli.conftest import Weir
from tests.support.execution import batch, carried_out, ready, under_way
from tests.support.policies import set_policy

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_plan_is_asked_for_approved_and_carried_out(
    weir: Weir, operator: Actor, approver: Actor, cluster: Cluster
) -> None:
    asked = weir("plan", "placement", "sf", "--here", "--algorithm", "mms", "--param", "nu=0.1",
                 "--json", user=operator.name).json  # fmt: skip
    assert (asked["state"], asked["parameters"]["nu"]) == ("ready", 0.1)
    assert asked["verbs"] == []
    shown = weir("proposals", "show", asked["id"], user=approver.name)
    assert asked["seal"] in shown.out.splitlines()
    assert "approve" in shown.out
    wrong = weir("proposals", "approve", asked["id"], "--seal", "0" * 64, user=approver.name)
    assert (wrong.code, Proposal.objects.get().state) == (1, "ready")
    assert "weir proposals show" in wrong.err
    done = weir("proposals", "approve", asked["id"], "--seal", asked["seal"], user=approver.name)
    assert (done.code, "approved" in done.out) == (0, True)
    proposal = Proposal.objects.get()
    carried_out(proposal)
    watched = weir("watch", "sf", "--proposal", proposal.pk, "--json", user=operator.name)
    assert watched.code == 0
    listed = weir("proposals", "list", "sf", user=operator.name).out
    assert "done" in listed
    moved = weir("proposals", "show", proposal.pk, "--json", user=operator.name).json
    assert moved["execution"]["applied"] == len(moved["actions"])


def test_each_verb_of_an_execution(
    weir: Weir, operator: Actor, approver: Actor, cluster: Cluster
) -> None:
    set_policy(cluster, cluster_moves=2)
    proposal = ready(operator, cluster)
    by, pk = {"user": approver.name}, proposal.pk
    assert weir("proposals", "approve", pk, "--seal", proposal.seal, **by).code == 0
    assert weir("proposals", "withdraw", pk, "--reason", "wait", **by).code == 0
    assert weir("proposals", "approve", pk, "--seal", proposal.seal, **by).code == 0
    progression.advance(pk)
    assert weir("proposals", "pause", pk, "--reason", "a call", **by).code == 0
    assert weir("proposals", "resume", pk, **by).code == 0
    step = under_way(proposal)
    assert step is not None
    batch(cluster, step)
    assert weir("proposals", "stop", pk, "--reason", "enough", **by).code == 0
    refused = weir("proposals", "resume", pk, **by)
    assert refused.code == 1
    assert "allowed now: roll-back" in refused.err
    assert weir("watch", "sf", "--proposal", pk, **by).code == 1
    back = weir("proposals", "roll-back", pk, "--seal", proposal.seal, "--reason", "worse", **by)
    assert "rolling back" in back.out
    carried_out(proposal)
    assert weir("watch", "sf", "--proposal", pk, **by).code == 0


def test_waiting_for_a_worker_that_does_not_come_ends(
    weir: Weir, operator: Actor, cluster: Cluster
) -> None:
    refused = weir("plan", "placement", "sf", "--timeout", "0.1", user=operator.name)
    assert refused.code == 6
    assert "weir proposals show" in refused.err
    asked = weir("plan", "placement", "sf", "--no-wait", "--json", user=operator.name).json
    assert asked["state"] == "computing"
    assert weir("proposals", "cancel", asked["id"], user=operator.name).code == 0


def test_a_plan_that_is_refused_says_why(weir: Weir, operator: Actor, sf: Cluster) -> None:
    refused = weir("plan", "placement", "sf", "--here", user=operator.name)
    assert refused.code == 2
    assert "No query is running" in refused.err


def test_watching_tells_what_happens_meanwhile(
    weir: Weir, operator: Actor, approver: Actor, cluster: Cluster
) -> None:
    """Another process asks, approves and moves while it looks."""
    proposal = ready(operator, cluster)

    def meanwhile() -> None:
        try:
            weir_of_another(approver, proposal)
        finally:
            connection.close()

    other = threading.Timer(0.3, meanwhile)
    other.start()
    told = weir("watch", "sf", "--for", "2", "--every", "0.1", user=operator.name)
    other.join(10)
    assert told.code == 0
    assert f"proposal {proposal.pk} is executing" in told.out
    assert "step 1" in told.out


def weir_of_another(approver: Actor, proposal: Proposal) -> None:
    control.apply_verb(approver, proposal, control.verb_at("approve"), seal=proposal.seal)
    progression.advance(proposal.pk)


def test_a_plan_for_a_described_cluster(weir: Weir, viewer: Actor, cluster: Cluster,
                                        tmp_path: Path) -> None:  # fmt: skip
    """What is planned for the export is what is planned for the cluster."""
    file = tmp_path / "sf.yaml"
    file.write_text(weir("export", "sf", user=viewer.name).out)
    described = ("plan", "placement", "--input", file, "--algorithm", "mms")
    found = weir(*described, "--json").json
    proposal = ready(viewer_as_operator(cluster), cluster)
    assert len(found["actions"]) == len(proposal.actions)
    assert found["after"] == proposal.after
    assert found["bounds"] == proposal.bounds
    assert "bound" in weir(*described).out


def viewer_as_operator(cluster: Cluster) -> Actor:
    from tests.support.cluster import actor  # noqa: PLC0415

    return actor("operator", f"planner-of-{cluster.slug}")
