"""Forms of proposals and comparisons."""
