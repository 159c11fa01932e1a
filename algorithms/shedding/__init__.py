"""Load shedding: which records of which streams are dropped in an overload (paper 003)."""
