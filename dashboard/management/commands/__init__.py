"""Commands of manage.py that draw."""
