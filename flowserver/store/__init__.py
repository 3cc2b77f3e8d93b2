"""SQL and nothing else: synchronous SQLAlchemy Core, the same statements on SQLite and PostgreSQL.

Functions take an open connection; who opened it decides where the transaction ends. Owns durability, decides nothing.
"""
