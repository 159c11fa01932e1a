"""Random queries over random records, through the engine and through DuckDB.

Every disagreement is a defect of the engine, or a rule of docs/queries.md that `sql.py` spells out.
`WEIR_DIFFERENTIAL_SEEDS` makes the tests longer: so many seeds instead of the few of each run.
"""
