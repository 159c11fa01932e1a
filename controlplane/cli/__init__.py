"""The command `weir` for terminals and scripts.

It calls the services in process, as manage.py does: a user who runs it can read the data directory.
Roles are checked nevertheless, and the audit log names the acting user.
"""
