"""Executions: executing approved proposals step by step, and rolling them back."""
