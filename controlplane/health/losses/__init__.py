"""Losses of Redis, checkpoint or database: detection, repair, and decisions of administrators.

`detection.py` compares the three; `repair.py` keeps results correct or records that they are
incomplete, and applies the decision of an administrator.
"""
