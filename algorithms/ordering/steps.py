"""The steps of an execution: consecutive actions that may take effect together.

What Weir adds to the papers: a plan is executed in steps, each as large as its limits allow.
"""

from typing import Final, NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.vocabulary import Flags, Ints

NONE: Final = -1


class Footprints(NamedTuple):
    """The resources by which actions fit into one step; n actions, e entries.

    `sent` int64[n]: bytes of state. `nodes` int64[n, 2]: the nodes that a move leaves and enters,
    -1 for other actions. Objects that an action changes, and no other action of its step, by rows
    `indptr` int64[n + 1], `objects` int64[e]; `shared` int64[n]: an object that other moves of the
    step may change, too, but no action of another kind; -1 for none. `single` bool[n]: the action
    takes a step of its own.
    """

    sent: Ints
    nodes: Ints
    indptr: Ints
    objects: Ints
    shared: Ints
    single: Flags


class StepBounds(NamedTuple):
    """Bounds of one step: actions; moves that a node takes part in; bytes. One action always fits.

    Each step may have one action more than the step before, from `first` to `actions`.
    """

    first: int
    actions: int
    node_moves: int
    sent: float


def step_stops(footprints: Footprints, bounds: StepBounds) -> Ints:
    """Return where each step stops, int64[steps], ascending; the last is the number of actions."""
    # In the types for which the code is compiled.
    bounds = bounds._replace(sent=float(bounds.sent))
    most = int(max(footprints.objects.max(initial=NONE), footprints.shared.max(initial=NONE)))
    nodes = int(footprints.nodes.max(initial=NONE))
    stops = np.empty(len(footprints.sent), np.int64)
    seen = np.full((2, most + 1), NONE, np.int64)
    busy = np.zeros((2, nodes + 1), np.int64)
    return stops[: _play(footprints, bounds, seen, busy, stops)]


@compiled
def _play(footprints: Footprints, bounds: StepBounds, seen: Ints, busy: Ints, stops: Ints) -> int:
    """Write the stops and return their number.

    `seen` int64[2, objects]: the last step that changed or shared an object; `busy` int64[2,
    nodes]: the last step of a node's moves, and their number in it.
    """
    step, count, sent, closed = 0, 0, 0, False
    actions = bounds.first
    for place in range(len(footprints.sent)):
        if count > 0 and (
            closed
            or footprints.single[place]
            or count >= actions
            or sent + footprints.sent[place] > bounds.sent
            or not _fits(footprints, place, bounds.node_moves, step, seen, busy)
        ):
            stops[step] = place
            step, count, sent = step + 1, 0, 0
            actions = min(actions + 1, bounds.actions)
        _add(footprints, place, step, seen, busy)
        count, sent, closed = count + 1, sent + footprints.sent[place], footprints.single[place]
    if count > 0:
        stops[step] = len(footprints.sent)
        step += 1
    return step


@compiled
def _fits(
    footprints: Footprints, place: int, node_moves: int, step: int, seen: Ints, busy: Ints
) -> bool:
    """Return whether nodes and objects of an action are free in a step."""
    for node in footprints.nodes[place]:
        if node != NONE and busy[0, node] == step and busy[1, node] >= node_moves:
            return False
    shared = footprints.shared[place]
    if shared != NONE and seen[0, shared] == step:
        return False
    for entry in range(footprints.indptr[place], footprints.indptr[place + 1]):
        if seen[0, footprints.objects[entry]] == step or seen[1, footprints.objects[entry]] == step:
            return False
    return True


@compiled
def _add(footprints: Footprints, place: int, step: int, seen: Ints, busy: Ints) -> None:
    """Record the resources of an action in a step."""
    for entry in range(footprints.indptr[place], footprints.indptr[place + 1]):
        seen[0, footprints.objects[entry]] = step
    if footprints.shared[place] != NONE:
        seen[1, footprints.shared[place]] = step
    for node in footprints.nodes[place]:
        if node != NONE:
            busy[1, node] = busy[1, node] + 1 if busy[0, node] == step else 1
            busy[0, node] = step
