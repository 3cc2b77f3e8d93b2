"""All SQL of the server: synchronous SQLAlchemy Core, the same statements on SQLite and PostgreSQL.

Functions take an open connection; the caller decides where the transaction ends.
"""
