"""Schemas of streams: what may change while queries read them, and what a sample suggests."""
