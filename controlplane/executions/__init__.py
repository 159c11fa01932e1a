"""Executions: carrying out approved proposals step by step, and rolling them back."""
