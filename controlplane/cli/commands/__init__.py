"""Commands: each reads its arguments, calls a use case, and prints the outcome."""
