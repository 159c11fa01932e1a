"""Command-line doors of the dashboard."""
