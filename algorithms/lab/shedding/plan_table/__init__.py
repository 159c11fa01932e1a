"""Tables of plans for every rate up to bounds: Solver and Solver-W (paper 003, section 5)."""
