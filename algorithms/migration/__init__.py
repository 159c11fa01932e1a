"""Migration: which tasks move between nodes when their number or load changes (paper 004)."""
