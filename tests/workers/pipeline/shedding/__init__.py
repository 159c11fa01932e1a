"""Tests of load shedding in the data plane."""
