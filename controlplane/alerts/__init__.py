"""Alerts: measures of clusters against the limits of their policies, and their states."""
