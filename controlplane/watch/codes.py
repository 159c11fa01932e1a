"""Reasons of the watch loops' decisions: stable codes with a description."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Code:
    """A reason with its description for people.

    calm: the figure is as it should be, or nobody looks; a loop that was not calm has a figure
    that has not mended yet. grade: good, warn, or unknown where nothing is known.
    """

    name: str
    about: str
    calm: bool = False
    grade: str = "warn"


_ALL: Final = (
    Code("balanced", "The load is balanced within the bound", calm=True, grade="good"),
    Code("within", "The figure is within its bound", calm=True, grade="good"),
    Code("off", "The watch loops are switched off by the policy", calm=True, grade="unknown"),
    Code("not_running", "The cluster is not to run", calm=True, grade="unknown"),
    Code("no_data", "There is nothing measured to judge by yet", calm=True, grade="unknown"),
    Code("data_too_old", "The newest measurement is too old to decide by", calm=True),
    Code("dead_band", "It is back below its bound, but not by as much as the dead band asks"),
    Code("execution_running", "A proposal of the cluster is being carried out"),
    Code("proposal_waiting", "A proposal for the cluster is being computed, or waits for a person"),
    Code("cooldown", "The last proposal of the loops was too short a while ago"),
    Code("blackout", "A blackout holds: nothing begins by itself"),
    Code("excluded", "Exclusions forbid what would help"),
    Code("no_planner", "No planner that is connected can help here"),
    Code("silent", "A node that hosts tasks says nothing: a person must see whether it is gone"),
    Code("asked", "A plan is being computed"),
    Code("no_gain", "The plan would not gain enough, so it is not proposed"),
    Code("spoils", "The plan would spoil another measure, so it is not proposed"),
    Code("failed", "No plan could be computed"),
    Code("drifted", "The cluster had drifted from the plan before it could begin"),
    Code("recommended", "A proposal waits for a person"),
    Code("acted", "A proposal was approved by the policy and begins"),
)
CODES: Final[Mapping[str, Code]] = {code.name: code for code in _ALL}


def is_calm(name: str) -> bool:
    """Return True if a loop with this last code had nothing to mend; unknown codes are calm."""
    return name not in CODES or CODES[name].calm
