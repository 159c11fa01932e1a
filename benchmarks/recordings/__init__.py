"""How the recordings of the demonstrations were cut out of their sources."""
