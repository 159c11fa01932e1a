"""Losses of Redis, checkpoint or database: detection, repair, and decisions of administrators.

`detect.py` compares what the three hold; `repair.py` does what keeps results right or records that
they are incomplete; `deciding.py` carries out what an administrator chose.
"""
