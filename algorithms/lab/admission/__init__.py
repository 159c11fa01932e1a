"""Admission in the Lab: bounds, workloads, a simulation, the JSON form, experiments (paper 001)."""
