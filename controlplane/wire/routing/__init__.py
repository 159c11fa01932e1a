"""The routing table: which node evaluates which query, which split node reads which stream.

A table is an immutable value, numbered by version. What travels is the *delta* from one version
to the next, so that placing one query among ten thousand costs one small message; snapshots let
a reader start anywhere. A delta is a sequence of actions, of which plans consist as well.
"""
