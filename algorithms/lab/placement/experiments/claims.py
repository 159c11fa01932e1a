"""Claims of paper 000 about its figures 3 to 7, by experiment."""

from collections.abc import Mapping
from typing import Final

from algorithms.lab.claims import Claim
from algorithms.lab.claims.checks import (
    Below,
    Close,
    Course,
    Each,
    Limited,
    Steady,
    SubLinear,
    TimesBetter,
)

_RF: Final = "replication_factor"
_ONLINE: Final = ("least_source", "least_qt", "on_rand")
_LESS_POPULAR: Final = "The heavier the tail of source popularity (the smaller its exponent), the "
_LEAST_COST: Final = "LeastCost has the smallest replication factor of the online algorithms."
_LEAST_SOURCE: Final = "LeastSource comes close to LeastCost: within 10 %."
_SUB_LINEAR: Final = "The replication factor grows less than the number of servers."
_ROBUST: Final = "LeastCost keeps its lead although servers leave and join."


def _best_online(source: str, entry: str, text: str = _LEAST_COST) -> Claim:
    return Claim(source, text, Below(_RF, "least_cost", _ONLINE, slack=0.005), entry)


def _close_online(source: str, entry: str) -> Claim:
    return Claim(source, _LEAST_SOURCE, Close(_RF, "least_source", "least_cost", 0.1), entry)


# A smaller workload has too few queries per server, or is not in its steady state.
SCALE: Final[Mapping[str, float]] = {
    "queries": 10_000,
    "largest_degree": 500,
    "steps": 100_000,
    "lifetime": 10_000,
}
CLAIMS: Final[Mapping[str, tuple[Claim, ...]]] = {
    "fig3a": (
        Claim("figure 3(a)", f"{_LESS_POPULAR}larger the replication factor.",
              Course(_RF, ("mms", "ic", "off_rand"), rises=False), "3(a) heavier tails"),
        Claim("figure 3(a)", "IC and MMS replicate up to four times less than random placement.",
              Each((TimesBetter(_RF, "mms", "off_rand", 3.5),
                    TimesBetter(_RF, "ic", "off_rand", 3.5))), "3(a) IC and MMS up to 4 times"),
        Claim("section 6", "MMS has the smallest replication factor at every exponent.",
              Below(_RF, "mms", ("ic", "off_rand")), "summary: MMS is consistently best"),
    ),
    "fig3b": (
        Claim("figure 3(b)", "With one source per query, MMS and IC are nearly optimal: at most "
              "1 % of the records are delivered twice.",
              Limited(_RF, ("mms", "ic"), most=1.01, below=1.0), "3(b) one source per query"),
        Claim("figure 3(b)", "Random placement reaches a plateau at two to three sources per "
              "query.", Limited(_RF, ("off_rand",), least=1.0, above=2.0),
              "3(b) diminishing increase"),
        Claim("figure 3(b)", "MMS and IC replicate less than random placement for any number of "
              "sources per query.",
              Each((Below(_RF, "mms", ("off_rand",), above=2.0),
                    Below(_RF, "ic", ("off_rand",), above=2.0))), "3(b) diminishing increase"),
    ),
    "fig3c": (
        Claim("figure 3(c)", _SUB_LINEAR, SubLinear(_RF, ("mms", "ic")), "3(c) sub-linear in k"),
    ),
    "fig3d": (
        Claim("figure 3(d)", "The replication factor does not depend on the number of queries: "
              "MMS and IC change by at most 10 %.",
              Steady(_RF, ("mms", "ic"), 0.1), "3(d) invariant in n"),
    ),
    "fig4a": (
        _best_online("figure 4(a)", "4 LeastCost is best online"),
        _close_online("figure 4(a)", "4 LeastSource is close"),
        Claim("figure 4(a)", "LeastCost replicates up to four times less than random placement.",
              TimesBetter(_RF, "least_cost", "on_rand", 3.5), "4 LeastCost up to 4 times"),
    ),
    "fig4b": (
        _best_online("figure 4(b)", "4 LeastCost is best online"),
        Claim("figure 4(b)", "LeastQT is equal to random placement: within 5 %.",
              Close(_RF, "least_qt", "on_rand", 0.05), "4 LeastQT is equal to OnRand"),
    ),
    "fig4c": (_best_online("figure 4(c)", "4 LeastCost is best online"),),
    "trips": (
        Claim("figure 3(c)", _SUB_LINEAR, SubLinear(_RF, ("mms", "ic")), "3(c) sub-linear in k"),
        _best_online("figure 4(c)", "4 LeastCost is best online"),
    ),
    "trips_live": (_best_online("figure 5(c)", "5 LeastCost best"),),
    "fig4d": (_best_online("figure 4(d)", "4 LeastCost is best online"),),
    "fig5a": (_best_online("figure 5(a)", "5 LeastCost best"),),
    "fig5b": (_best_online("figure 5(b)", "5 LeastCost best"),),
    "fig5c": (_best_online("figure 5(c)", "5 LeastCost best"),),
    "fig5d": (
        _best_online("figure 5(d)", "5 LeastCost best"),
        Claim("figure 5(d)", "The replication factor grows slowly with the lifetime of queries.",
              Each((Course(_RF, ("least_cost",)), SubLinear(_RF, ("least_cost",)))),
              "5 LeastCost best"),
        _close_online("figure 5(d)", "5 (as in 4) LeastSource is close"),
    ),
    "fig6a": (_best_online("figure 6(a)", "6 robust against churn", _ROBUST),),
    "fig6b": (_best_online("figure 6(b)", "6 robust against churn", _ROBUST),),
    "fig6c": (_best_online("figure 6(c)", "6 robust against churn", _ROBUST),),
    "fig6d": (
        Claim("figure 6(d)", "LeastCost is robust against churn: its replication factor changes by "
              "at most 5 % with the interval between changes of servers.",
              Steady(_RF, ("least_cost",), 0.05), "6 robust against churn"),
    ),
    "fig7a": (_best_online("figure 7, top", "7 LeastCost mostly best"),),
    "fig7b": (
        Claim("figure 7, middle", "LeastCost has the smallest replication factor, also below MMS.",
              Below(_RF, "least_cost", ("mms", *_ONLINE), slack=0.005), "7 LeastCost mostly best"),
    ),
    "fig7c": (
        Claim("figure 7, bottom", "LeastCost replicates substantially less than MMS: at least "
              "20 %.", Below(_RF, "least_cost", ("mms",), factor=1.2),
              "7 negative: LeastCost substantially better"),
    ),
}  # fmt: skip
