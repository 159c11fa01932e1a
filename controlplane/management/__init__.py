"""Command-line doors of the control plane."""
