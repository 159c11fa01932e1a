"""The stable codes of the reasons of decisions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Code:
    """A reason with its description for people.

    `calm`: True if the figure is within its limit or not observed. `grade`: good, warn or unknown.
    """

    name: str
    about: str
    calm: bool = False
    grade: str = "warn"


_ALL: Final = (
    Code("balanced", "The load is balanced within the limit", calm=True, grade="good"),
    Code("within", "The figure is within its limit", calm=True, grade="good"),
    Code("off", "The policy switches the watch loops off", calm=True, grade="unknown"),
    Code("not_running", "The cluster is stopped", calm=True, grade="unknown"),
    Code("no_data", "There are no measurements yet", calm=True, grade="unknown"),
    Code("data_too_old", "The newest measurement is too old", calm=True),
    Code(
        "catching_up",
        "The cluster works off the backlog of an outage: its rates and latencies show no load",
        calm=True,
    ),
    Code("dead_band", "The figure is below its limit again, but within the dead band"),
    Code("stale", "The armed ladder is stale, but not for long enough", calm=True),
    Code("execution_running", "A proposal of the cluster is being executed"),
    Code("proposal_waiting", "A proposal for the cluster is being computed, or waits for a person"),
    Code("cooldown", "The cool-down after the last proposal of the loops is not over"),
    Code("blackout", "A blackout is in effect: nothing starts automatically"),
    Code("excluded", "Exclusions forbid the necessary actions"),
    Code("no_planner", "No connected planner can help"),
    Code("silent", "A node with tasks does not report: check whether it is lost"),
    Code("asked", "A plan is being computed"),
    Code("no_gain", "The plan gains too little, so it is not proposed"),
    Code("spoils", "The plan worsens another measure, so it is not proposed"),
    Code("failed", "No plan could be computed"),
    Code("drifted", "The cluster had drifted from the snapshot before the start"),
    Code("recommended", "A proposal waits for a person"),
    Code("acted", "The policy approved a proposal, which starts"),
    Code("redirected", "Streams were redirected to other split nodes", calm=True, grade="good"),
    Code(
        "no_capacity",
        "The capacity of split nodes is neither declared nor measured",
        calm=True,
        grade="unknown",
    ),
    Code("too_large", "The rate of a stream exceeds the capacity of a split node"),
    Code("split_limit", "The policy allows no more split nodes"),
    Code("busy", "The routing table changed meanwhile", calm=True, grade="unknown"),
)
CODES: Final[Mapping[str, Code]] = {code.name: code for code in _ALL}


def is_calm(name: str) -> bool:
    """Return True if a loop with this last code had no problem; unknown codes are calm."""
    return name not in CODES or CODES[name].calm
