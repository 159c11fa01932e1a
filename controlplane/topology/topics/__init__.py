"""Streams that are topics: their declaration, and what brokers and pipeline have of them."""
