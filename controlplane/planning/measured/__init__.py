"""What is measured of a cluster before a plan: costs of records, and the keys of queries."""
