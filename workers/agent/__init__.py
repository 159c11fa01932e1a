"""Keeps one Spark driver per cluster as the database wants it."""
