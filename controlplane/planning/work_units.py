"""The units that a plan moves, in the form in which algorithms order and choose moves.

There, a unit receives its sources completely. A stream of which tasks of split queries read parts
is therefore several sources: the part of each task that moves, that of all others on each node, and
what remains. Queries of one task read all of them, so a node that reads the stream completely
receives nothing more for its tasks. What remains is below 0 where queries read the same records;
who reads it reads the parts as well.
"""

import numpy as np

from algorithms.ordering import MoveSet, WorkUnits
from algorithms.rows import group_positions, pick_rows
from algorithms.vocabulary import Floats, Ints
from controlplane.planning.load_model import LoadModel
from controlplane.plans.plan import TaskMove


def move_set(model: LoadModel, moves: list[TaskMove]) -> MoveSet:
    """Return moves for ordering. Raises `KeyError` on an unknown task or node."""
    units, targets = model.units_of(moves)
    if (units < 0).any():
        unknown = moves[int(np.flatnonzero(units < 0)[0])]
        raise KeyError((unknown.query, unknown.task))
    rates, table = work_units(model, units)
    return MoveSet.from_units(rates, model.capacities, table, np.arange(len(units)), targets)


def work_units(model: LoadModel, units: Ints) -> tuple[Floats, WorkUnits]:
    """Return the records/s of each source; these units in their order, and a unit per node.

    The unit of a node stands for all others there.
    """
    count, streams = len(units), max(1, len(model.rates))
    row_of = count + model.nodes
    row_of[units] = np.arange(count)
    indptr, read = model.complete
    owners = np.repeat(row_of, np.diff(indptr))
    complete = np.unique(owners * streams + read)
    tasks, places = model.split_entries
    spots = row_of[tasks] * streams + model.entries[places]
    partial, places_of = np.unique(spots, return_inverse=True)
    parts = np.bincount(places_of, model.parts[places], len(partial))
    # The sources are what remains of each stream, and the parts.
    stream_of = np.concatenate([np.arange(len(model.rates)), partial % streams])
    remaining = 1 - np.bincount(partial % streams, parts, len(model.rates))
    sources = np.concatenate([remaining, parts]) * model.rates[stream_of]
    begins, members = group_positions(stream_of, len(model.rates))
    stops, entries = pick_rows(begins, complete % streams)
    added = np.flatnonzero(~np.isin(partial, complete))
    rows = np.concatenate(
        [np.repeat(complete // streams, np.diff(stops)), partial[added] // streams]
    )
    numbers = np.concatenate([members[entries], len(model.rates) + added])
    hosts = np.concatenate([model.nodes[units], np.arange(len(model.indices))])
    begins, order = group_positions(rows, len(hosts))
    return sources, WorkUnits(begins, numbers[order], hosts)
