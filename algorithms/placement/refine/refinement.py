"""Refinement of a placement, beyond the paper: annealing from a start by the paper's algorithms."""

import time
from dataclasses import dataclass, field

import numpy as np

from algorithms.errors import BadProblem
from algorithms.estimates import Estimate, ProblemSize
from algorithms.placement.checks import checked_assignment
from algorithms.placement.offline import IncrementalCost, Mms
from algorithms.placement.online import LeastCost
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.refine import annealing
from algorithms.placement.refine.annealing import Pieces, assignment_of, cut
from algorithms.placement.result import OfflinePlacement
from algorithms.random_numbers import new_state
from algorithms.vocabulary import MAX_SEED, Progress, SmallInts, parameter, portion, silent

# The start's share of the progress; it takes about that share of the time.
_START = 0.1
# Steps at one temperature, between two looks at the clock: at most some ten milliseconds.
_LONGEST_STAGE = 200_000
_STAGES = 100
# Each schedule is tried with this share of sweeps and seconds; the best one gets the rest.
_TRIAL = 0.1
# A gain below this share of a source's rate is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Schedule:
    """Temperature and power fall from their first values as the share done grows.

    `hot`, `cold`: temperatures in units of the mean rate that a piece reads. `power`: the first
    power of the annealed sum. `settling`: the last share of the steps, which take only
    improvements of the traffic itself.
    """

    hot: float
    cold: float
    power: float = 0.5
    settling: float = 0.05

    def temperature(self, done: float) -> float:
        """Return the temperature after a share of the steps; it falls by equal factors."""
        cooled = done / (1 - self.settling)
        return self.hot * (self.cold / self.hot) ** cooled if cooled < 1 else 0.0

    def exponent(self, done: float) -> float:
        """Return the power after a share of the steps; it falls by equal differences."""
        return max(0.0, self.power * (1 - done / (1 - self.settling)))


# The first does best where sources are spread at random over the queries, the second where
# queries fall into groups (map tiles along a trip) or few types are large.
SCHEDULES = (Schedule(hot=0.3, cold=0.05), Schedule(hot=0.1, cold=0.02))


@dataclass
class _Search:
    """The pieces of one refinement and the best servers found for them so far."""

    problem: PlacementProblem
    pieces: Pieces
    seed: int
    gain: float = 0.0
    best: SmallInts | None = None
    unit: float = field(init=False)

    def __post_init__(self) -> None:
        read = self.problem.types.indices
        self.unit = float(self.problem.rates[read].mean()) or 1.0

    def anneal(self, schedule: Schedule, steps: int, seconds: float, report: Progress) -> float:
        """Anneal from the start and return the largest gain on the way; keep its servers."""
        board, state = annealing.lay_out(self.problem, self.pieces), new_state(self.seed)
        started = time.perf_counter()
        most = steps
        stage = max(1, min(_LONGEST_STAGE, steps // _STAGES))
        done, reported, gain, largest = 0, 0.0, 0.0, 0.0
        while done < steps:
            annealing.set_power(board, schedule.exponent(done / steps))
            temperature = self.unit * schedule.temperature(done / steps)
            gain -= annealing.anneal(board, state, temperature, stage)
            done = min(done + stage, steps)
            largest = max(largest, gain)
            if gain > self.gain + _ROUNDING * self.unit:
                self.gain, self.best = gain, board.servers.copy()
            reported = max(reported, done / steps)
            report(reported)
            elapsed = time.perf_counter() - started
            if elapsed >= seconds:
                break
            # Cooling is hastened so that it ends with the clock; the estimate is of all so far.
            steps = min(most, max(done, int(done * seconds / elapsed)))
        return largest


def refine(
    problem: PlacementProblem,
    assignment: SmallInts,
    *,
    sweeps: int = 2000,
    seconds: float = 10.0,
    seed: int = 0,
    progress: Progress = silent,
) -> SmallInts:
    """Return an assignment within the caps with at most the traffic of the given one, int32[n].

    Pieces of query types are moved to, or exchanged with pieces of, servers that receive one of
    their sources. A sweep tries one move per piece. `seconds` bounds the time: where it would not
    do for all sweeps, cooling is hastened; where it does, the same seed gives the same result.
    Raises `BadProblem` when the given assignment is not one within the caps.
    """
    start = checked_assignment(assignment, problem.queries, problem.servers)
    over = np.flatnonzero(np.bincount(start, minlength=problem.servers) > problem.caps)
    if len(over):
        raise BadProblem("assignment", f"server {over[0]} hosts more than {problem.caps[over[0]]}")
    pieces = cut(problem, start)
    if min(len(pieces.kinds), problem.servers) <= 1:
        return start
    search = _Search(problem, pieces, seed)
    _search(search, sweeps, seconds, progress)
    if search.best is None:
        return start
    return assignment_of(problem, pieces._replace(servers=search.best))


def _search(search: _Search, sweeps: int, seconds: float, progress: Progress) -> None:
    """Try each schedule for a part of the steps, then use the best one for the rest."""
    started = time.perf_counter()
    steps = sweeps * len(search.pieces.kinds)
    tried = _TRIAL * len(SCHEDULES)
    gains = [
        search.anneal(
            schedule,
            max(1, int(_TRIAL * steps)),
            _TRIAL * seconds,
            portion(progress, _TRIAL * number, _TRIAL),
        )
        for number, schedule in enumerate(SCHEDULES)
    ]
    best = SCHEDULES[int(np.argmax(gains))]
    left = 1 - tried
    remaining = max(0.0, seconds - (time.perf_counter() - started))
    search.anneal(best, max(1, int(left * steps)), remaining, portion(progress, tried, left))


@dataclass(frozen=True)
class Refined(OfflinePlacement):
    """Annealing from a greedy start, beyond section 4: the best plan within the time given.

    Moves and exchanges pieces of query types; the plan never delivers more than the start.
    """

    seconds: float = parameter(
        10.0,
        title="Time of the computation",
        unit="s",
        help="Time for the whole plan; where it is short, fewer moves are tried.",
        minimum=0.0,
        maximum=3600.0,
    )
    sweeps: int = parameter(
        2000,
        title="Tried moves",
        unit="moves per query type",
        help="How many moves are tried for each piece of a query type, time permitting.",
        minimum=1,
        maximum=1_000_000,
    )
    start: str = parameter(
        "least_cost",
        help="What is refined: the plan of LeastCost, which takes next to no time, of IC, of MMS, "
        "or the better of these two.",
        choices={
            "least_cost": "LeastCost",
            "ic": "IC",
            "mms": "MMS",
            "better": "The better of IC and MMS",
        },
    )
    seed: int = parameter(
        0, help="Same seed, same plan, time permitting.", minimum=0, maximum=MAX_SEED
    )

    def estimate(self, size: ProblemSize) -> Estimate:
        """Return the estimate: it takes its whole time limit."""
        return super().estimate(size).plus(self.seconds)

    def assign(self, problem: PlacementProblem, progress: Progress) -> SmallInts:
        """Return the server of each query, int32[n]."""
        started = time.perf_counter()
        assignment = self._start(problem)
        progress(_START)
        return refine(
            problem,
            assignment,
            sweeps=self.sweeps,
            seconds=max(0.0, self.seconds - (time.perf_counter() - started)),
            seed=self.seed,
            progress=portion(progress, _START, 1 - _START),
        )

    def _start(self, problem: PlacementProblem) -> SmallInts:
        """Return the start; IC's (Figure 1's for single sources) where LeastCost has none."""
        if self.start == "least_cost" and not problem.types.single_source:
            # With this alpha the bound of equation 7 is the offline cap when all have arrived.
            alpha = problem.nu * problem.queries / problem.servers
            plan = LeastCost(nu=problem.nu, alpha=alpha).solve(problem)
            if (plan.loads <= problem.caps).all():
                return plan.assignment
        rules = {"mms": (Mms,), "better": (IncrementalCost, Mms)}.get(
            self.start, (IncrementalCost,)
        )
        plans = [rule().solve(problem) for rule in rules]
        return min(plans, key=lambda plan: plan.traffic).assignment
