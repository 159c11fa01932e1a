"""Pages of accounts, tokens and the audit log."""
