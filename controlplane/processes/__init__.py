"""Processes: what starts and watches them, serves their requests, and limits computations."""
