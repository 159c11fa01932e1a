"""Endpoints of the caller, of tokens and of the audit log."""
