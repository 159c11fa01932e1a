"""The skew of keys: samples of the keys of queries, history, report of the key microscope."""
