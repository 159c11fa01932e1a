"""The planners of clusters: one package each, which has everything of it but its algorithms.

Below this package nothing imports a planner: `planning.adapters`, `watch.registry` and the pages
find the modules `adapter` and `loop` of a planner by their names.
"""
