"""Views: guard, load, call, respond; one file per kind of page."""
