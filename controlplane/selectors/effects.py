"""What each move of a proposal is worth, a page at a time."""

from dataclasses import dataclass

from controlplane.errors import Conflict
from controlplane.models import Proposal
from controlplane.pagination.pages import PER_PAGE, Page
from controlplane.planning.effects import Effect, effects
from controlplane.planning.execution_plan import tasks_of


@dataclass(frozen=True)
class EffectRow:
    """A move at its place, with the names of its nodes and of the one that is worst without it."""

    place: int
    query: int
    name: str
    task: int | None
    source: str
    target: str
    bytes: int
    effect: Effect
    worst: str


def effects_page(proposal: Proposal, number: int, per_page: int = PER_PAGE) -> Page[EffectRow]:
    """Return one page of the moves in their order; raises `Conflict` without a plan."""
    snapshot = proposal.snapshot
    if proposal.snapshot_row is None:
        raise Conflict("no_plan", f"The proposal is {proposal.state}: it has no plan")
    total = len(proposal.moves)
    number = min(max(1, number), max(1, -(-total // per_page)))
    places = range((number - 1) * per_page, min(total, number * per_page))
    names = {node.index: node.name for node in snapshot.nodes}
    split = {query for query, *_ in snapshot.split}
    rows = [
        EffectRow(
            place=found.place,
            query=move["query"],
            name=move["name"],
            task=tasks_of(move)[0] if move["query"] in split else None,
            source=names[move["from"]],
            target=names[move["to"]],
            bytes=move["bytes"],
            effect=found,
            worst=names[found.worst],
        )
        for found in effects(snapshot, proposal.moves, places)
        for move in (proposal.moves[found.place],)
    ]
    return Page(rows, total, number, per_page)
