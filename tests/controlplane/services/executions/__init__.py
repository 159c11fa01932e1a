"""Tests of executions."""
