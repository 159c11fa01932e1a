"""Results by SQL: a typed view for each query, read-only roles, and bounded statements.

In PostgreSQL each cluster has a schema with the views of its queries (`schemas.py`), and logins of
users that can read nothing else (`logins.py`). In SQLite a statement gets the same views on a
connection of its own. Statements of pages, API and command are checked (`statements.py`) and then
run with limits (`runs.py`).
"""
