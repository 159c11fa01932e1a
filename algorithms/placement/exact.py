"""The optimum of small instances, beyond the paper: an integer program for HiGHS."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from algorithms.errors import NotProven, TooLarge
from algorithms.estimates import Estimate, ProblemSize
from algorithms.optimizers import csr_array, linear_constraint, solve_milp
from algorithms.placement.offline.rounds import spread
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.refine import Refined
from algorithms.placement.result import OfflinePlacement, PlacementPlan
from algorithms.vocabulary import Floats, Ints, Progress, SmallInts, parameter, silent

# Beyond so many yes-or-no questions (source on server) there is no hope of a proof.
MOST_CHOICES = 5_000
_PROVEN = 0
# Share of the time for a good plan, which cuts off most of the search.
_HEAD_START = 0.05


@dataclass(frozen=True)
class Exact(OfflinePlacement):
    """The least traffic there is (section 2), proven, for small instances; else an error.

    One integer program: how many queries of each type go to each server, and which servers get
    which sources.
    """

    seconds: float = parameter(
        60.0,
        title="Time of the computation",
        unit="s",
        help="Time for the proof; without one there is no plan.",
        minimum=0.1,
        maximum=3_600.0,
    )

    def estimate(self, size: ProblemSize) -> Estimate:
        """Return the estimate: it takes its whole time limit."""
        return super().estimate(size).plus(self.seconds)

    def solve(self, problem: PlacementProblem, progress: Progress = silent) -> PlacementPlan:
        """Place all queries; `lower_bound` is the traffic itself.

        Raises `Infeasible` when they do not fit, `TooLarge` with the numbers for an instance that
        is hopeless, `NotProven` with the gap when the time is up.
        """
        plan = super().solve(problem, progress)
        return replace(plan, lower_bound=plan.traffic)

    def assign(self, problem: PlacementProblem, progress: Progress) -> SmallInts:
        """Return the server of each query, int32[n]."""
        del progress
        read = int((problem.readers > 0).sum())
        if read * problem.servers > MOST_CHOICES:
            raise TooLarge(
                f"{read:,} sources on {problem.servers:,} servers make "
                f"{read * problem.servers:,} choices; an optimum is sought for at most "
                f"{MOST_CHOICES:,}"
            )
        start = Refined(seconds=_HEAD_START * self.seconds).solve(problem)
        program = _Program(problem)
        result = solve_milp(
            program.costs,
            program.most,
            [*program.rules(), program.no_worse_than(start.traffic)],
            integrality=np.ones(program.variables),
            options={"time_limit": self.seconds * (1 - _HEAD_START), "mip_rel_gap": 0.0},
        )
        _check_proof(result, start, self.seconds)
        given = np.rint(result.x[: program.amounts]).astype(np.int64)
        return spread(problem, program.as_rounds(given))


class _Program:
    """Variables: queries of type t on server j, at t * k + j; then source s on server j, 0 or 1."""

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem = problem
        types, servers = problem.types, problem.servers
        self.amounts = len(types) * servers
        self.variables = self.amounts + len(problem.rates) * servers
        self.costs = np.concatenate([np.zeros(self.amounts), np.repeat(problem.rates, servers)])
        fits = np.minimum(types.sizes[:, None], problem.caps[None, :]).ravel()
        self.most = np.concatenate([fits, np.ones(len(problem.rates) * servers)])

    def rules(self) -> list[Any]:
        """All queries placed, no server above its cap, sources where they are read."""
        problem, servers = self.problem, self.problem.servers
        amounts = np.arange(self.amounts)
        placed = self._rows(amounts // servers, amounts, np.ones(self.amounts))
        held = self._rows(amounts % servers, amounts, np.ones(self.amounts))
        sizes = problem.types.sizes
        return [
            linear_constraint(placed, sizes, sizes),
            linear_constraint(held, upper=problem.caps),
            linear_constraint(self._deliveries(), upper=0),
            *self._order_of_equals(),
        ]

    def no_worse_than(self, traffic: float) -> Any:
        """Exclude plans that are worse than a known one."""
        return linear_constraint(csr_array(self.costs[None, :]), upper=traffic * (1 + 1e-9))

    def as_rounds(self, given: Ints) -> Ints:
        """Return the solution as (type, server, queries), int64[r, 3]."""
        cells = np.flatnonzero(given)
        kinds, servers = np.divmod(cells, self.problem.servers)
        return np.stack([kinds, servers, given[cells]], axis=1)

    def _deliveries(self) -> Any:
        """A type's queries on a server need each of its sources there."""
        problem, servers = self.problem, self.problem.servers
        owner = np.repeat(np.arange(len(problem.types)), np.diff(problem.types.indptr))
        pairs = np.arange(len(owner) * servers)
        kind, server = owner[pairs // servers], pairs % servers
        source = problem.types.indices[pairs // servers].astype(np.int64)
        amount = kind * servers + server
        delivery = self.amounts + source * servers + server
        return self._rows(
            np.concatenate([pairs, pairs]),
            np.concatenate([amount, delivery]),
            np.concatenate([np.ones(len(pairs)), -self.most[amount]]),
        )

    def _order_of_equals(self) -> list[Any]:
        """Of servers with one cap the lower number has as many queries: halves the search."""
        caps, servers = self.problem.caps, self.problem.servers
        pairs = [
            (server, other)
            for server, other in zip(range(servers), range(1, servers), strict=False)
            if caps[server] == caps[other]
        ]
        if not pairs:
            return []
        types = np.arange(len(self.problem.types)) * servers
        rows = np.repeat(np.arange(len(pairs)), 2 * len(types))
        columns = np.concatenate(
            [np.concatenate([types + left, types + right]) for left, right in pairs]
        )
        signs = np.tile(np.repeat([-1.0, 1.0], len(types)), len(pairs))
        return [linear_constraint(self._rows(rows, columns, signs), upper=0)]

    def _rows(self, rows: Ints, columns: Ints, values: Floats) -> Any:
        count = int(rows.max(initial=-1)) + 1
        return csr_array((values, (rows, columns)), shape=(count, self.variables))


def _check_proof(result: Any, start: PlacementPlan, seconds: float) -> None:
    if result.status == _PROVEN:
        return
    bound = max(float(result.mip_dual_bound or 0.0), start.lower_bound)
    best = min(start.traffic, np.inf if result.x is None else float(result.fun))
    raise NotProven(
        f"no optimum was proven in {seconds:g} s: it is between {bound:g} and {best:g} "
        f"({best / bound - 1:.1%} apart); give it more time, or take refined"
        if bound
        else f"no optimum was proven in {seconds:g} s; give it more time, or take refined"
    )
