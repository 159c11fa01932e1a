"""Pages of the effects of a proposal's actions."""

from dataclasses import dataclass

from controlplane.errors import Conflict
from controlplane.models import Proposal
from controlplane.pagination.pages import PER_PAGE, Page, page_range
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


def effects_page(proposal: Proposal, number: int, per_page: int = PER_PAGE) -> Page[EffectRow]:
    """Return one page of the actions in their order; raises `Conflict` without a plan."""
    snapshot, plan = proposal.snapshot, proposal.plan
    if proposal.snapshot_row is None:
        raise Conflict("no_plan", f"The proposal is {proposal.state}: it has no plan")
    total = len(plan)
    number, places = page_range(total, number, per_page)
    names = names_of(proposal.cluster, plan[places.start : places.stop])
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
    return Page(rows, total, number, per_page)
