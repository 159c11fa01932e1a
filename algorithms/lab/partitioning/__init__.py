"""Partitioning in the Lab: a simulation, queues, the JSON form, experiments (papers 001, 002)."""
