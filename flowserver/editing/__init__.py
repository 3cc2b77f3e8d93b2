"""Help for people who write flows and flow tests in an editor: JSON Schemas, made from the tables of the languages.

Pure functions over texts; nothing here reads files or knows a protocol of editors.
"""
