"""Losses of Redis, checkpoint or database: detection, repair, and decisions of administrators.

`detect.py` compares what the three hold; `repair.py` does what keeps results right or records that
they are incomplete; `decisions.py` applies what an administrator chose.
"""
