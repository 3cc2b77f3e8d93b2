"""The exit codes of every command, in one place."""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended. docs/reference/settings.md has the table that is made from this."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    UNREACHABLE = 4
    CONFLICT = 5
    CRASHED = 70
    DETACHED = 130
    UNREAD = 141

    @property
    def meaning(self) -> str:
        """What it says, in a sentence."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.DONE: "The command did what it was asked.",
    ExitCode.FAILED: "It found something wrong, or the server refused what it was given: violations, errors in a "
    "definition, an execution that did not succeed, is parked again, or has not ended within `--timeout`.",
    ExitCode.USAGE: "The command, a setting, a variable or a functions file cannot be understood, or lacks something.",
    ExitCode.NOT_FOUND: "There is no such file, address, database, key, flow, execution or function.",
    ExitCode.UNREACHABLE: "The server or the database cannot be reached, does not let the caller in, refuses the "
    "functions of `functions serve`, or cannot take the request now: it has too much to do, or refuses new work "
    "because its disk is almost full (`DiskAlmostFull`); the address to listen on needs keys; or the database was "
    "taken away from a server that runs.",
    ExitCode.CONFLICT: "Existing state prevents it: another server, a port in use, a schema of another version, "
    "a name that is taken, parked executions.",
    ExitCode.CRASHED: "A bug: the command, or the writer of a server, ended with a traceback.",
    ExitCode.DETACHED: "Ctrl-c: the command no longer waits; the execution that it watched continues.",
    ExitCode.UNREAD: "The program that reads the output has ended, such as `head -1`. `apply` goes on nevertheless, "
    "and ends with the code of what it did.",
}
