"""Users and what they may do: roles, tokens and the audit log."""
