"""Benchmarks of pages."""
