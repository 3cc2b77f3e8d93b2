"""The command line: one module per command or group of commands, put together in `main`.

Owns what people and scripts see: flags, words, exit codes (0 done, 1 refused or failed, 2 wrong usage). Decides
nothing that the layers below decide.
"""
