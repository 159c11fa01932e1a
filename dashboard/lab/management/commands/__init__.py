"""Commands of manage.py that use figures."""
