"""Policies: which plans are approved automatically and when, who approves, what no plan moves."""
