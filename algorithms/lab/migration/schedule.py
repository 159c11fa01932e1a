"""The order of transfers, section 5.1 after Roediger et al. [22]: phases in which links are busy.

Every node sends to at most one node and receives from at most one at a time, at one rate. No
schedule ends before the node with the most to send or to receive is done, and cutting the matrix
of transfers into matchings (Birkhoff and von Neumann; preemptive open shop) ends exactly then.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from algorithms.compiled import compiled
from algorithms.errors import BadProblem
from algorithms.vocabulary import Floats, Ints

_UNMATCHED = -1
# Amounts are scheduled as whole numbers, so that sums are exact; others are scaled to this many.
_LARGEST_SUM = 2.0**52
# Less than this is not an amount.
_SMALLEST_UNIT = 2.0**-1000


class Transfer(NamedTuple):
    """The bytes that one node sends to another during a phase."""

    source: int
    target: int
    amount: float


@dataclass(frozen=True)
class Phase:
    """Concurrent transfers; no node sends or receives twice.

    `start`, `duration`: in amounts, as a link carries one amount per unit of time.
    """

    start: float
    duration: float
    transfers: tuple[Transfer, ...]


@dataclass(frozen=True)
class Schedule:
    """Phases one after the other; `total` is the largest row or column sum, the optimum."""

    phases: tuple[Phase, ...]
    total: float


def schedule_transfers(transfers: Any) -> Schedule:
    """Return an optimal schedule of a square matrix: row i sends to column j.

    Preemptive: a transfer may be cut over several phases. Raises `BadProblem`.
    """
    amounts = _check_transfers(transfers)
    whole, scale = _as_whole_numbers(amounts)
    durations, partners = _decompose(whole, _padding(whole))
    phases = []
    left, start = whole.copy(), 0
    for duration, partner in zip(durations.tolist(), partners.tolist(), strict=True):
        sent = []
        for source, target in enumerate(partner):
            amount = min(duration, int(left[source, target]))
            if amount:
                left[source, target] -= amount
                sent.append(Transfer(source, target, amount * scale))
        phases.append(Phase(start * scale, duration * scale, tuple(sent)))
        start += duration
    return Schedule(tuple(phases), start * scale)


def _check_transfers(transfers: Any) -> Floats:
    try:
        amounts = np.array(transfers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadProblem("transfers", "must be rows of numbers, all as long") from error
    if amounts.ndim != 2 or amounts.shape[0] != amounts.shape[1]:  # noqa: PLR2004 - a matrix
        raise BadProblem("transfers", f"must be a square matrix, not of shape {amounts.shape}")
    wrong = np.argwhere(~(np.isfinite(amounts) & (amounts >= 0)))
    if len(wrong):
        row, column = wrong[0].tolist()
        why = f"must be finite and not negative, not {amounts[row, column]}"
        raise BadProblem(f"transfers[{row}][{column}]", why)
    loops = np.flatnonzero(np.diag(amounts))
    if len(loops):
        raise BadProblem(f"transfers[{loops[0]}][{loops[0]}]", "must be 0: a node keeps its own")
    return amounts


def _as_whole_numbers(amounts: Floats) -> tuple[Ints, float]:
    """Return the amounts as whole numbers, and their unit."""
    total = float(max(amounts.sum(axis=0).max(initial=0), amounts.sum(axis=1).max(initial=0)))
    if total < _LARGEST_SUM and (amounts == np.floor(amounts)).all():
        return amounts.astype(np.int64), 1.0
    # A power of two: scaling down again is then exact.
    scale = max(2.0 ** np.ceil(np.log2(total / _LARGEST_SUM)), _SMALLEST_UNIT)
    return np.rint(amounts / scale).astype(np.int64), float(scale)


@compiled
def _padding(amounts: Ints) -> Ints:
    """Return the idle time per pair of links with which all rows and columns have equal sums."""
    nodes = len(amounts)
    total = 0
    for node in range(nodes):
        total = max(total, amounts[node].sum(), amounts[:, node].sum())
    idle = np.zeros_like(amounts)
    column = 0
    column_left = total - amounts[:, 0].sum() if nodes else 0
    for row in range(nodes):
        row_left = total - amounts[row].sum()
        while row_left > 0:
            while column_left == 0:
                column += 1
                column_left = total - amounts[:, column].sum()
            given = min(row_left, column_left)
            idle[row, column] += given
            row_left -= given
            column_left -= given
    return idle


@compiled
def _decompose(amounts: Ints, idle: Ints) -> tuple[Ints, Ints]:
    """Cut a matrix of equal row and column sums into matchings.

    Returns the durations int64[p] and the target of each source int64[p, n] per phase. Each phase
    ends an entry, after which only the pairs without one are matched again.
    """
    nodes = len(amounts)
    left = amounts + idle
    most = np.count_nonzero(left) + 1
    durations, partners = np.empty(most, np.int64), np.empty((most, nodes), np.int64)
    target_of = np.full(nodes, _UNMATCHED, np.int64)
    source_of = np.full(nodes, _UNMATCHED, np.int64)
    count = 0
    while nodes and left[0].sum() > 0:
        for source in range(nodes):
            if target_of[source] == _UNMATCHED:
                _rematch(left, source, target_of, source_of)
        longest = left[0, target_of[0]]
        for source in range(nodes):
            longest = min(longest, left[source, target_of[source]])
        durations[count] = longest
        partners[count] = target_of
        count += 1
        for source in range(nodes):
            target = target_of[source]
            left[source, target] -= longest
            if left[source, target] == 0:
                target_of[source] = source_of[target] = _UNMATCHED
    return durations[:count].copy(), partners[:count].copy()


@compiled
def _rematch(left: Ints, source: int, target_of: Ints, source_of: Ints) -> None:
    """Match one more source along a shortest augmenting path; Hall's theorem guarantees one."""
    nodes = len(left)
    reached_from = np.full(nodes, _UNMATCHED, np.int64)
    queue = np.empty(nodes, np.int64)
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        sender = queue[head]
        head += 1
        for target in range(nodes):
            if left[sender, target] == 0 or reached_from[target] != _UNMATCHED:
                continue
            reached_from[target] = sender
            if source_of[target] == _UNMATCHED:
                _flip(target, source, reached_from, target_of, source_of)
                return
            queue[tail] = source_of[target]
            tail += 1


@compiled
def _flip(target: int, source: int, reached_from: Ints, target_of: Ints, source_of: Ints) -> None:
    """Exchange matched and unmatched pairs on the path that ends at `target`."""
    while True:
        sender = reached_from[target]
        before = target_of[sender]
        target_of[sender], source_of[target] = target, sender
        if sender == source:
            return
        target = before
