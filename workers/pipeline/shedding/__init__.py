"""Load shedding by a ladder of drop rules: the choice of its position, and its drop rules."""
