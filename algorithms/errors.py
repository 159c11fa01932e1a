"""Errors of the planners, with the numbers in their attributes."""

import math
from collections.abc import Mapping, Sequence


class PlanningError(Exception):
    """Base of the planners' errors."""

    def __reduce__(self) -> tuple[object, ...]:
        # `__init__`, which takes other arguments than the message, is not called again.
        return BaseException.__new__, (type(self), *self.args), self.__dict__


class BadProblem(PlanningError):
    """The problem is invalid: `where` names the value, `why` the reason."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = why


class BadParameters(PlanningError):
    """Parameters are out of range or of the wrong type: messages by field name."""

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        self.fields = {name: list(messages) for name, messages in fields.items()}
        super().__init__("; ".join(f"{name}: {' '.join(why)}" for name, why in fields.items()))


class Infeasible(PlanningError):
    """All servers filled to their caps do not hold all queries; `caps` has one per server.

    `smallest`: the least slack nu at which they do.
    """

    def __init__(self, queries: int, caps: Sequence[int], nu: float, smallest: float) -> None:
        self.queries = queries
        self.servers = len(caps)
        self.caps = tuple(caps)
        self.places = sum(caps)
        self.nu = nu
        self.smallest = smallest
        least, most = min(caps), max(caps)
        each = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        # Rounded up, so that the printed slack is sufficient.
        named = math.ceil(smallest * 1e6) / 1e6
        super().__init__(
            f"{queries:,} queries do not fit on {self.servers:,} servers of {each} queries each "
            f"({self.places:,} places with an uneven load of {nu:g} allowed); "
            "the least at which they fit is "
            f"{named:.10g}"
        )


class InfeasibleTau(PlanningError):
    """No assignment keeps the balance: `smallest` is the least tau that task intervals can keep."""

    def __init__(
        self, nodes: int, tau: float, smallest: float, what: str = "task intervals"
    ) -> None:
        super().__init__(
            f"no {what} on {nodes:,} nodes keep an uneven work of {tau:g}; the least that task "
            f"intervals can keep is {smallest:.6g}"
        )
        self.nodes = nodes
        self.tau = tau
        self.smallest = smallest


class TooLarge(PlanningError):
    """An exact solution needs too much memory or time: `why` has the numbers."""


class NotProven(PlanningError):
    """An exact search ended without a solution: `why` has the numbers and the remedy."""


class MissingDependency(PlanningError):
    """A required optional package is not installed."""

    def __init__(self, package: str, extra: str = "") -> None:
        also = f" (or weir[{extra}])" if extra else ""
        super().__init__(
            f"{package} is not installed; install it with: pip install {package}{also}"
        )


class UnknownPlanner(PlanningError):
    """No planner has that name."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"there is no planner {name!r}; known: {', '.join(known)}")
        self.name, self.known = name, tuple(known)


class UnknownAlgorithm(PlanningError):
    """No algorithm of that name is registered for the planner; `known` are the registered ones."""

    what = "algorithm"

    def __init__(self, planner: str, name: str, known: Sequence[str]) -> None:
        names = ", ".join(known) or "none"
        super().__init__(f"{planner} has no {self.what} {name!r}; known: {names}")
        self.planner, self.name, self.known = planner, name, tuple(known)


class UnknownGrouping(PlanningError):
    """No key grouping of that name is known."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"there is no key grouping {name!r}; known: {', '.join(known)}")
        self.name, self.known = name, tuple(known)
