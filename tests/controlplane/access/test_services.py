"""Services refuse who lacks the role before anything else, whatever door is used.

Doors refuse as well (tests/controlplane/api/authorisation); commands and tasks have none.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from django.utils import timezone

from controlplane import lab
from controlplane.access.roles import Actor
from controlplane.alerts import actions
from controlplane.catalog import query_settings
from controlplane.cluster_spec import creation
from controlplane.clusters import changes, deletion, demo
from controlplane.clusters.scenarios import service as scenarios
from controlplane.clusters.tour import service as tour
from controlplane.errors import Forbidden
from controlplane.explain.drafts import preview
from controlplane.health import stuck_batches
from controlplane.health.losses import repair
from controlplane.integrations import attached_jobs
from controlplane.models import (
    Alert,
    AttachedJob,
    Cluster,
    Comparison,
    Incident,
    Proposal,
    Query,
    Scenario,
)
from controlplane.planners.shedding import activation, arming
from controlplane.policies import blackouts, exclusions, store
from controlplane.proposals import comments, comparisons, derivation, requests
from controlplane.proposals.executions import control
from controlplane.records import append, dead_letters
from controlplane.records.bodies import Format
from controlplane.records.requests import append_body
from controlplane.topology import (
    bulk_actions,
    characteristics,
    coordinates,
    drop_rules,
    key_groupings,
    nodes,
    queries,
    split_nodes,
    streams,
)

Service = Callable[[Actor], object]
# An argument that is not looked at.
UNREAD: Final[Any] = None


def services_of_operators(cluster: Cluster) -> Sequence[Service]:
    query, proposal = Query(cluster=cluster), Proposal(cluster=cluster, planner="manual")
    stream, node = cluster.streams.get(name="s0"), cluster.nodes.get(index=0)
    return (
        lambda by: actions.acknowledge(by, Alert(cluster=cluster)),
        lambda by: activation.activate(by, cluster, 1, 15, "why"),
        lambda by: activation.release(by, cluster),
        lambda by: append.append(by, stream, UNREAD),
        lambda by: append_body(by, stream, b"", Format.JSON),
        lambda by: arming.arm(by, cluster, "why"),
        lambda by: arming.disarm(by, cluster, "why"),
        lambda by: attached_jobs.remove(by, AttachedJob()),
        lambda by: bulk_actions.cancel(by, cluster, 1),
        lambda by: bulk_actions.end_matching(by, cluster, "", 1),
        lambda by: bulk_actions.restore(by, cluster, 1),
        lambda by: bulk_actions.restore_named(by, cluster, []),
        lambda by: changes.check_partitions(by, cluster, 2),
        lambda by: changes.set_batch_limits(by, cluster, {}),
        lambda by: changes.start(by, cluster),
        lambda by: characteristics.set_characteristics(by, stream, {}),
        lambda by: comments.add_comment(by, proposal, "a comment"),
        lambda by: comparisons.cancel(by, Comparison(cluster=cluster)),
        lambda by: comparisons.compare(by, cluster, []),
        lambda by: control.add_reason(by, proposal, "why"),
        lambda by: coordinates.set_coordinates(by, stream, None),
        lambda by: dead_letters.delete(by, cluster, UNREAD),
        lambda by: dead_letters.replay(by, cluster, UNREAD),
        lambda by: demo.add(by, "sf"),
        lambda by: derivation.without(by, proposal, [0]),
        lambda by: drop_rules.lift(by, stream),
        lambda by: drop_rules.set_drop(by, stream, UNREAD),
        lambda by: exclusions.add_exclusion(by, cluster, "node", "node 1", "x", timezone.now()),
        lambda by: exclusions.remove_exclusion(by, cluster, 1),
        lambda by: key_groupings.change_query(by, query, "why", UNREAD),
        lambda by: lab.request(by, "placement", "fig4a"),
        lambda by: nodes.check_count(by, cluster, 5),
        lambda by: nodes.configure(by, node),
        lambda by: nodes.set_states(by, cluster, {}),
        lambda by: preview.cancel(by, cluster),
        lambda by: preview.preview(by, cluster, UNREAD),
        lambda by: queries.end(by, cluster, []),
        lambda by: queries.submit_many(by, cluster, []),
        lambda by: query_settings.set_retention(by, query, seconds=60),
        lambda by: query_settings.set_shedding(by, query, weight=2.0),
        lambda by: requests.request(by, cluster),
        lambda by: requests.request_again(by, proposal),
        lambda by: requests.request_moves(by, cluster, ["q0"], 1),
        lambda by: scenarios.end_scenario(by, Scenario(cluster=cluster)),
        lambda by: scenarios.start_scenario(by, cluster, "rush_hour"),
        lambda by: streams.revise(by, stream, UNREAD),
        lambda by: split_nodes.redirect(by, stream, 1),
        lambda by: split_nodes.set_split_capacity(by, cluster, 10.0, emulated=False),
        lambda by: streams.delete(by, stream, "s0"),
        lambda by: streams.register(by, cluster, []),
        lambda by: tour.dismiss_tour(by, cluster),
        lambda by: tour.start_tour(by, cluster),
    )


def services_of_admins(cluster: Cluster) -> Sequence[Service]:
    return (
        lambda by: blackouts.add_blackout(by, cluster, reason="why"),
        lambda by: blackouts.remove_blackout(by, cluster, 1),
        lambda by: changes.set_details(by, cluster, {}),
        lambda by: changes.set_log(by, cluster, "", 64),
        lambda by: changes.set_master(by, cluster, "local[2]"),
        lambda by: creation.create_cluster(by, UNREAD, 100.0),
        lambda by: creation.create_configured_cluster(by, UNREAD),
        lambda by: repair.decide(by, Incident(cluster=cluster), "stop"),
        lambda by: deletion.delete_cluster(by, cluster, "sf"),
        lambda by: store.revert_change(by, cluster, 1),
        lambda by: stuck_batches.skip(by, cluster, 1, "why"),
        lambda by: store.update_policy(by, cluster, {}),
    )


@pytest.mark.django_db
def test_services_refuse_who_lacks_the_role(viewer: Actor, approver: Actor, sf: Cluster) -> None:
    for by, services in (
        (viewer, services_of_operators(sf)),
        (approver, services_of_admins(sf)),
    ):
        for service in services:
            with pytest.raises(Forbidden):
                service(by)
