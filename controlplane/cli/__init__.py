"""The command `weir` for terminals and scripts.

It calls the API in process, as manage.py calls services: a user who runs it can read the data
directory. Roles are checked nevertheless, and the audit log names the acting user. With --url it
calls the API of a Weir elsewhere.
"""
