"""The commands of manage.py; each reads its arguments and calls a service."""
