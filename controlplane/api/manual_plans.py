"""Manual plans: proposals that move chosen queries to a chosen node."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from controlplane.api.common.examples import with_examples
from controlplane.api.common.schemas import ReasonIn
from controlplane.api.common.security import caller, cluster_of
from controlplane.api.proposals import ProposalOut
from controlplane.proposals import requests

router = Router(tags=["proposals"])
_MOVES = with_examples({"Two queries": {"queries": ["trips", "fares"], "node": 3}})


class MovesIn(ReasonIn):
    """Names of running queries of one task, and the index of the node that they move to."""

    queries: list[str] = Field(min_length=1, max_length=requests.MOST_MOVED)
    node: int = Field(ge=0, le=10**6)


@router.post("/{slug}/proposals/moves", response={202: ProposalOut}, openapi_extra=_MOVES)
def request_moves(request: HttpRequest, slug: str, body: MovesIn) -> Any:
    """Request a plan that moves these queries to a node; a person approves it as any other.

    It is computing until a worker has its cost, measures and seal. A rollback of its execution
    moves the queries back.
    """
    actor, cluster = caller(request), cluster_of(request)
    proposal = requests.request_moves(actor, cluster, body.queries, body.node, body.reason)
    return Status(202, proposal)
