"""The commands of manage.py that draw."""
