"""The archive: windows that do not change any more, on disk.

It is a Django application of its own, because its tables are in a database of their own (the alias
`results`): with SQLite a second file, so that writing a thousand windows does not hold the lock of
the system of record. Its rows name queries by id and refer to no other table.
"""
