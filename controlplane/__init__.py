"""What is known and decided: the Django project and the system of record."""
