"""Admission of input streams: which split node reads which stream.

Paper 001 (Balkesen, Tatbul, Özsu: Adaptive Input Admission and Management for Parallel Stream
Processing, DEBS 2013), sections 2 and 3.
"""
