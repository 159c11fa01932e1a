"""Claims of paper 003 about its figures 10 to 15 and table 3, by experiment."""

from collections.abc import Mapping
from typing import Final

from algorithms.lab.claims import Claim
from algorithms.lab.claims.checks import Below, Course, Each, Limited

_SELECTIVITIES: Final = tuple(f"child_selectivity_{value}" for value in (0.9, 0.7, 0.5, 0.3))
_LOADS: Final = ("load_100", "load_50", "load_25", "load_12.5")

# Fewer random rates or linear programs do not show the error.
SCALE: Final[Mapping[str, float]] = {"points": 50, "lp_values": 5_000}
CLAIMS: Final[Mapping[str, tuple[Claim, ...]]] = {
    "fig10": (
        Claim("figure 10(a)", "C-FIT plans at least ten times faster than Solver with the same "
              "guarantee.", Below("seconds", "c_fit", ("solver",), factor=10.0),
              "10(a) C-FIT is much faster"),
        Claim("figure 10(a)", "Solver needs more time the more uneven the load of the nodes is.",
              Course("lp_values", ("solver",)), "10(a) Solver is more sensitive"),
        Claim("figure 10(b)", "Solver-W needs fewer linear programs than Solver for the same "
              "expected error.", Below("lp_values", "solver_w", ("solver",)),
              "10(b) Solver-W is faster"),
        Claim("figure 10", "The error of C-FIT is at most 5 %.",
              Limited("error", ("c_fit",), most=5.0), "10 the error of C-FIT"),
        Claim("Weir", "The exact planner is faster than all of them, without an error.",
              Below("seconds", "exact", ("solver", "solver_w", "c_fit"))),
    ),
    "fig11a": (
        Claim("figure 11(a)", "Solver-W needs more linear programs at a higher mean rate.",
              Course("lp_values", ("solver_w_64_32", "solver_w_80_16")),
              "11(a) more time with a greater lambda"),
        Claim("figure 11(a)", "It needs more, the more uneven the load of the nodes is.",
              Below("lp_values", "solver_w_56_40", ("solver_w_88_8",), above=3.0),
              "11(a) more time with more imbalance"),
    ),
    "fig11c": (
        Claim("figure 11(c)", "The better the provision level (the smaller the costs), the fewer "
              "linear programs Solver-W needs.", Course("lp_values", ("solver_w",)),
              "11(c) less time"),
    ),
    "fig13": (
        Claim("figure 13", "Solver and C-FIT need more time with more branches.",
              Course("seconds", ("solver", "c_fit"), dip=0.15), "13 both need more time"),
        Claim("figure 13", "At 2 branches Solver is faster than C-FIT.",
              Below("seconds", "solver", ("c_fit",), below=2.0), "13 Solver is slightly faster"),
        Claim("figure 13", "From 8 branches on, C-FIT is faster than Solver.",
              Below("seconds", "c_fit", ("solver",), above=8.0), "13 Solver is slightly faster"),
    ),
    "fig14a": (
        Claim("figure 14(a)", "The expected error of Solver-W falls more slowly with more inputs.",
              Each((Below("expected", "solver_w_2", ("solver_w_4",), above=100.0),
                    Below("expected", "solver_w_4", ("solver_w_8",), above=100.0))),
              "14(a) convergence is slower"),
    ),
    "fig14b": (
        Claim("figure 14(b)", "C-FIT needs far more time with 4 inputs than with 2, at least ten "
              "times.", Below("seconds", "c_fit_2", ("c_fit_4",), factor=10.0, below=0.2),
              "14(b) C-FIT at 10 %"),
        Claim("Weir", "The exact planner does not depend on the number of inputs: at most 1 s for "
              "8 inputs.", Limited("seconds", ("exact_8",), most=1.0)),
    ),
    "table3": (
        Claim("table 3", "The number of entries grows steeply with the number of inputs: at least "
              "ten times from 2 to 4.", Course("entries", ("d_fit",), least=10.0),
              "table 3: 46, 984"),
    ),
    "fig15a": (
        Claim("figure 15(a)", "A larger error needs far fewer rows.",
              Course("rows", _LOADS, rises=False, least=5.0), "15(a) a larger error"),
        Claim("figure 15(a)", "Less load needs more rows.",
              Below("rows", "load_100", _LOADS[1:], factor=1.05),
              "15(a) less load needs more rows"),
        Claim("figure 15(a)", "With splits, more rows are needed.",
              Below("rows", "load_100", ("split",), factor=1.05), "15(a) with splits"),
    ),
    "fig15b": (
        Claim("figure 15(b)", "Fewer rows have to be sent the more difference is tolerated.",
              Course("needed", _SELECTIVITIES, rises=False, dip=0.1), "15(b) more rows are sent"),
        Claim("figure 15(b)", "Larger changes of the selectivity need more rows.",
              Below("needed", "child_selectivity_0.9", ("child_selectivity_0.3",)),
              "15(b) larger changes"),
    ),
    "fig15c": (
        Claim("figure 15(c)", "Larger movements of load need more rows.",
              Below("needed", "parent_to_child_4", ("parent_to_child_24",)),
              "15(c) larger movements"),
        Claim("figure 15(c)", "After a movement of 24 ms, which reverses the load, at least 8 % of "
              "the rows must be sent whatever is tolerated.",
              Limited("needed", ("parent_to_child_24",), least=8.0), "15(c) after a reversal"),
    ),
}  # fmt: skip
