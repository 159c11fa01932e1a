"""Seeds of random streams."""

# A number, or a number with the streams' own numbers behind it: (seed, 1) and (seed, 2) are
# independent of each other and of seed.
Seed = int | tuple[int, ...]
