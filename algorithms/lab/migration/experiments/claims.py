"""Claims of paper 004 about its figures 9 to 15, by experiment."""

from collections.abc import Mapping
from typing import Final

from algorithms.lab.claims import Claim
from algorithms.lab.claims.checks import (
    Below,
    Course,
    Each,
    GapGrows,
    Limited,
    Steady,
    SubLinear,
    TimesBetter,
)

# Fewer migrations, or rounds of learning, differ by chance.
SCALE: Final[Mapping[str, float]] = {"migrations": 30, "rounds": 3}
CLAIMS: Final[Mapping[str, tuple[Claim, ...]]] = {
    "fig9": (
        Claim("figure 9", "Storm's scheduler moves more than twice as much state as the single "
              "step and as looking ahead.",
              Each((Below("moved", "single_step", ("storm",), factor=2.0),
                    Below("moved", "mtm", ("storm",), factor=2.0))), "9: Storm moves more"),
        Claim("figure 9", "Consistent hashing moves more state than both.",
              Each((Below("moved", "single_step", ("consistent_hashing",)),
                    Below("moved", "mtm", ("consistent_hashing",)))),
              "9: consistent hashing always moves more"),
        Claim("figure 9", "Looking ahead moves less state than single steps for every slack "
              "of the work.", Below("moved", "mtm", ("single_step",)),
              "9: MTM-aware is better"),
        Claim("figure 9", "The gap between both grows with the slack of the work.",
              GapGrows("moved", "mtm", "single_step"), "9: the gap between the two grows"),
        Claim("figure 9", "A single step never moves more state with a larger slack.",
              Course("moved", ("single_step",), rises=False, dip=0.0),
              "9: a single step is never worse"),
    ),
    "fig10": (
        Claim("figure 10", "SSM plans within 2 ms.", Limited("seconds", ("ssm",), most=2.0),
              "10: SSM within 2 ms"),
        Claim("Weir", "The single step of Weir has the same optimum in less time than SSM.",
              Below("seconds", "single_step", ("ssm",))),
    ),
    "fig11": (
        Claim("figure 11", "The time beforehand grows with the slack of the work.",
              Course("prepared", ("mtm",), dip=0.1), "11: hundreds of minutes of precomputation,"),
        Claim("Weir", "Learning needs less than a minute beforehand.",
              Limited("prepared", ("mtm",), most=60.0)),
    ),
    "fig12": (
        Claim("figure 12", "The more tasks, the less state is moved.",
              Course("moved", ("single_step",), rises=False, dip=0.1),
              "12: more tasks, fewer bytes"),
        Claim("figure 12", "The time per plan of SSM grows with the number of tasks.",
              Course("seconds", ("ssm",)), "12: more tasks, fewer bytes"),
        Claim("Weir", "The time per plan of the single step grows less than the number of tasks.",
              SubLinear("seconds", ("single_step",))),
    ),
    "fig13": (
        Claim("figure 13", "The response time after a migration grows with the window.",
              Course("response", ("single_step", "consistent_hashing"), dip=0.1),
              "13: response time grows"),
        Claim("figure 13", "Consistent hashing delays results at least twice as much.",
              Below("response", "single_step", ("consistent_hashing",), factor=2.0),
              "13: response time grows"),
    ),
    "fig14": (
        Claim("figure 14", "The larger the discount factor, the less state is moved.",
              Course("moved", ("mtm",), rises=False, dip=0.25), "14: larger gamma, fewer bytes"),
        Claim("figure 14", "The time beforehand grows with the discount factor.",
              Course("prepared", ("mtm",), least=1.25), "14: larger gamma, longer"),
    ),
    "fig15": (
        Claim("figure 15", "Live migration does not change the response time visibly: it varies "
              "by at most a factor of two.", Steady("response", ("live",), 1.0)),
        Claim("figure 15", "After a restart, the results of some minute are at least twice as "
              "late as with live migration.",
              TimesBetter("response", "live", "restart", 2.0)),
    ),
}  # fmt: skip
