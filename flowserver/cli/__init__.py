"""The command line: one module per command or group of commands, assembled in `main`.

Owns what people and scripts see: flags, texts, exit codes (`exit_codes`). The layers below make all other decisions.
"""
