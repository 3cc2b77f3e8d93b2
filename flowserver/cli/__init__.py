"""The command line: one module per command or group of commands, put together in `main`.

Owns what people and scripts see: flags, words, exit codes (`exit_codes`). Decides
nothing that the layers below decide.
"""
