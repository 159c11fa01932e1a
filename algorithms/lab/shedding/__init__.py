"""Load shedding in the Lab: tables of plans, exact optima, experiments (paper 003)."""
