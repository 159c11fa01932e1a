"""Samples of what the data plane measured."""
