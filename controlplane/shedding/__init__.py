"""Ladders of drop rules of clusters: arming, reports, history and drills."""
