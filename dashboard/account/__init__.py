"""Pages of the own account: log-in, password, sessions, single sign-on."""
