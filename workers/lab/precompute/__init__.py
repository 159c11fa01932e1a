"""Projected migration costs computed beforehand on Spark, kept and used again (paper 004, 4.2)."""
