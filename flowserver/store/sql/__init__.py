"""Connections and statements: what SQLite and PostgreSQL do alike, and where they differ."""
