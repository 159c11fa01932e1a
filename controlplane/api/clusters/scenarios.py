"""Endpoints of scenarios: disturbances of demo clusters."""

from typing import Any, Final

from django.http import HttpRequest
from ninja import Router, Schema, Status
from pydantic import Field

from controlplane.api.common.examples import with_examples
from controlplane.api.common.schemas import RequestBody, columns_of, dataclass_schema
from controlplane.api.common.security import caller, cluster_of
from controlplane.clusters import scenarios
from controlplane.clusters.scenarios import DEFAULT_MINUTES, LONGEST_MINUTES, ScenarioKind
from controlplane.models import Scenario

router = Router(tags=["scenarios"])
_EXAMPLE: Final = with_examples({"Node 2 processes nothing": {"minutes": 10, "node": 2}})


class ScenarioOut(
    columns_of(  # type: ignore[misc]
        Scenario, "id kind node factors started_at ends_at ended_at started_by ended_by note"
    )
):
    """A scenario; node: the index of the slow, lost or added node. ended_at: null while it lasts.

    factors: how many times as many records streams have, by name; "*": all of them. note: what its
    end did not revert.
    """


class ScenariosOut(Schema):
    """The kinds of scenarios that the cluster can have, and the newest 100 ones."""

    kinds: list[dataclass_schema(ScenarioKind)]  # type: ignore[valid-type]
    scenarios: list[ScenarioOut]


class ScenarioIn(RequestBody):
    """The minutes after which the scenario ends, and the index of its node if it is about one."""

    minutes: int = Field(DEFAULT_MINUTES, ge=1, le=LONGEST_MINUTES)
    node: int | None = Field(None, ge=0)


@router.get("/{slug}/scenarios", response=ScenariosOut)
def list_scenarios(request: HttpRequest, slug: str) -> Any:
    """List the kinds of scenarios of a demo cluster (none on others), and the newest scenarios."""
    cluster = cluster_of(request)
    return {
        "kinds": scenarios.kinds_of(cluster),
        "scenarios": scenarios.newest_scenarios(cluster),
    }


@router.post("/{slug}/scenarios/{kind}", response={201: ScenarioOut}, openapi_extra=_EXAMPLE)
def start_scenario(request: HttpRequest, slug: str, kind: str, body: ScenarioIn) -> Any:
    """Start a scenario on a demo cluster. Requires the role operator on the cluster.

    409: not_a_demo, not_running, scenario_active, no_such_node, node_inactive.
    """
    row = scenarios.start_scenario(
        caller(request), cluster_of(request), kind, minutes=body.minutes, node=body.node
    )
    return Status(201, row)


@router.post("/{slug}/scenarios/{int:pk}/end", response=ScenarioOut)
def end_scenario(request: HttpRequest, slug: str, pk: int) -> Any:
    """End a scenario and revert its effect. Requires the role operator on the cluster.

    409 (scenario_ended) if it has ended. A node that was added and has queries by now stays.
    """
    actor = caller(request)
    return scenarios.end_scenario(actor, scenarios.scenario_by_id(cluster_of(request), pk))
