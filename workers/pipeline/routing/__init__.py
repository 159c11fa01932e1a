"""Routing tables, compiled for dispatch and evaluation."""
