"""A planner whose plans mix every kind of action; it is there to show that none is special."""
