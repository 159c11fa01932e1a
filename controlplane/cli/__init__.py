"""The command `weir` for terminals and scripts.

It speaks to them in process, as manage.py does: whoever runs it can read the data directory, and
is trusted with it. Roles are checked all the same, and the audit log names who acted.
"""
