"""The moves of a proposal in pages, each with what has become of it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.models import Execution, Proposal, Step
from controlplane.pagination.pages import Page
from controlplane.planning.execution_plan import tasks_of

WAITING, LEFT_OUT, UNMOVED = "waiting", "left out", "not moved"
# What a step under way and one that is done make of a move, by direction.
WORDS: Mapping[str, tuple[str, str]] = {
    Execution.Direction.FORWARD: ("moving", "moved"),
    Execution.Direction.BACK: ("moving back", "moved back"),
}
# In these a move may still come; in what else there is, one that was not made is not made.
OPEN = (
    Proposal.State.READY, Proposal.State.APPROVED, Proposal.State.EXECUTING, Proposal.State.PAUSED,
)  # fmt: skip


@dataclass(frozen=True)
class Fate:
    """What has become of a move, and in which step."""

    state: str
    step: int | None = None

    def __str__(self) -> str:
        """Return it as a person reads it: “moved in step 3”."""
        return self.state if self.step is None else f"{self.state} in step {self.step}"


@dataclass(frozen=True)
class MoveRow:
    """A move at its place in the order (from 0); source and target are names of nodes.

    split: it takes tasks [first, past) of its query along, not the query as a whole.
    """

    place: int
    query: int
    name: str
    first: int
    past: int
    split: bool
    source: str
    target: str
    bytes: int
    fate: Fate
    note: str


def fates(proposal: Proposal, steps: Iterable[Step]) -> list[Fate]:
    """Return what has become of each move, by its place; steps are in the order of their numbers.

    A way back counts the moves that were made, the last first.
    """
    open_ = proposal.state in OPEN
    found = [_before_steps(move, open_) for move in proposal.moves]
    rows = list(steps)
    for step in rows:
        if step.direction == Execution.Direction.FORWARD:
            _mark(found, range(step.first, step.past), step)
    made = [at for at, fate in enumerate(found) if fate.state in WORDS["forward"]]
    made.reverse()
    for step in rows:
        if step.direction == Execution.Direction.BACK:
            skipped = set(step.skipped)
            places = [at for at in range(step.first, step.past) if at not in skipped]
            word = _word(step)
            for at in places:
                found[made[at]] = Fate(word, step.number)
    return found


def _before_steps(move: Mapping[str, Any], open_: bool) -> Fate:
    if move.get("outcome"):
        # Of a version of Weir that made all moves at once.
        return Fate(str(move["outcome"]))
    return Fate(WAITING if open_ else UNMOVED)


def _mark(found: list[Fate], places: range, step: Step) -> None:
    skipped, word = set(step.skipped), _word(step)
    for at in places:
        found[at] = Fate(LEFT_OUT if at in skipped else word, step.number)


def _word(step: Step) -> str:
    under_way, done = WORDS[step.direction]
    return done if step.state == Step.State.DONE else under_way


def steps_of(proposal: Proposal) -> list[Step]:
    """Return the steps of a proposal's execution by number, without their measures."""
    found = Step.objects.filter(execution__proposal=proposal).order_by("number")
    return list(found.only("number", "direction", "first", "past", "state", "skipped"))


def counted(found: Sequence[Fate]) -> list[tuple[str, int]]:
    """Return how many moves are in each state, most first."""
    return Counter(fate.state for fate in found).most_common()


def moves_page(
    proposal: Proposal, found: Sequence[Fate], number: int, per_page: int
) -> Page[MoveRow]:
    """Return one page of the moves in their order; a number past the end gives the last page."""
    total = len(proposal.moves)
    number = min(max(1, number), max(1, -(-total // per_page)))
    begin = (number - 1) * per_page
    names = dict(proposal.cluster.nodes.values_list("index", "name"))
    rows = [
        _row(at, proposal.moves[at], names, found[at])
        for at in range(begin, min(total, begin + per_page))
    ]
    return Page(rows, total, number, per_page)


def _row(at: int, move: Mapping[str, Any], names: Mapping[int, str], fate: Fate) -> MoveRow:
    first, past = tasks_of(move)
    source, target = (names.get(move[end], f"node {move[end]}") for end in ("from", "to"))
    size, note = move.get("bytes", 0), move.get("note", "")
    return MoveRow(
        place=at,
        query=move["query"],
        name=move["name"],
        first=first,
        past=past,
        split="first" in move,
        source=source,
        target=target,
        bytes=size,
        fate=fate,
        note=note,
    )
