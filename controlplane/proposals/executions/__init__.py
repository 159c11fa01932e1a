"""Executions: stepwise execution and rollback of approved proposals."""
