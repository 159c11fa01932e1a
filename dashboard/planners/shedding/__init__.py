"""The page of load shedding."""
