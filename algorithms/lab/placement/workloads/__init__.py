"""Workloads: subscriptions, rates, and arrivals and departures of queries and servers.

Each is a pure function of its parameters and a seed.
"""

from algorithms.lab.placement.workloads.bipartite import bipartite
from algorithms.lab.placement.workloads.subscriptions import Subscriptions
