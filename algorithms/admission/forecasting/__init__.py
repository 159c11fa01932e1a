"""Forecasts of the rates of streams (section 2.3)."""
