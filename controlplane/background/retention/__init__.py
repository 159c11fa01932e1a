"""What grows with time, what limits it, and the housekeeping that deletes the rest."""
