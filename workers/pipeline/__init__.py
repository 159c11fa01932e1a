"""The PySpark application of one cluster; it never imports Django."""
