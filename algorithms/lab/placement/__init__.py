"""Placement in the Lab: workloads, simulated clusters, the JSON form, experiments (paper 000)."""
