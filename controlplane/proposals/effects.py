"""The effects of a proposal's actions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from controlplane.errors import Conflict
from controlplane.models import Proposal
from controlplane.pagination.listing import NO_FILTERS, Filters, PlaceListing
from controlplane.planning.action_text import ActionText, action_text, names_of
from controlplane.planning.effects import Effect, effects
from controlplane.plans.plan import TaskMove


@dataclass(frozen=True)
class EffectRow:
    """An action, its effect, and the name of the worst loaded node without it."""

    place: int
    text: ActionText
    query: int | None
    task: int | None
    bytes: int
    effect: Effect
    worst: str


def effects_listing(proposal: Proposal, filters: Filters = NO_FILTERS) -> PlaceListing[EffectRow]:
    """Return the effects of the actions in their order; raises `Conflict` without a plan."""
    if proposal.snapshot_row is None:
        raise Conflict("no_plan", f"The proposal is {proposal.state}: it has no plan")
    return PlaceListing(range(len(proposal.plan)), partial(_rows, proposal), filters)


def _rows(proposal: Proposal, places: Sequence[int]) -> list[EffectRow]:
    snapshot, plan = proposal.snapshot, proposal.plan
    names = names_of(proposal.cluster, [plan[place] for place in places])
    nodes = {node.index: node.name for node in snapshot.nodes}
    split = {query for query, *_ in snapshot.split}
    rows = []
    for effect in effects(snapshot, plan, places):
        planned = plan[effect.place]
        move = planned if isinstance(planned, TaskMove) else None
        rows.append(
            EffectRow(
                place=effect.place,
                text=action_text(planned, names),
                query=move.query if move is not None else None,
                task=move.task if move is not None and move.query in split else None,
                bytes=planned.bytes,
                effect=effect,
                worst=nodes[effect.worst],
            )
        )
    return rows
