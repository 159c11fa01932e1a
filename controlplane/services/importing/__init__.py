"""Bringing a described cluster into Weir: all of it or nothing, and first without doing it.

What is not there yet is made as described. What is there is brought up to date where that is an
operator's plain decision (names, rates, capacities, policy, exclusions, what arcs drop); queries
that run are neither ended nor changed nor moved: that takes their own commands, and a proposal.
What the description does not name stays.
"""

from controlplane.services.importing.bringing import bring_in
from controlplane.services.importing.report import Imported
from controlplane.services.importing.running import query_spec

__all__ = ["Imported", "bring_in", "query_spec"]
