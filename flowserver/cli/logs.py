"""The server's log: one line per record on stderr, with time, level and origin."""

import asyncio
import logging
import sys
import time

FORMAT = "%(asctime)s.%(msecs)03dZ %(levelname)-7s %(name)s: %(message)s"

_CHATTY = ("alembic", "asyncio", "uvicorn", "httpx", "httpcore")
"""Libraries whose informative lines say what our own lines say better."""


class LineFormatter(logging.Formatter):
    """UTC times; line breaks within a message are escaped, so that no input can forge a record."""

    def __init__(self) -> None:
        super().__init__(FORMAT, "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging calls it so
        """The record's line, without a traceback."""
        return super().formatMessage(record).rstrip().replace("\r", "\\r").replace("\n", "\\n")


def set_up_logs(level: str) -> None:
    """Send records of `level` and above to stderr; libraries speak up from warnings on, or always at `debug`."""
    stream = logging.StreamHandler(sys.stderr)
    stream.setFormatter(LineFormatter())
    logging.basicConfig(level=level.upper(), handlers=[stream], force=True)
    for name in _CHATTY if level == "info" else ():
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(tells_of_a_fault)


def tells_of_a_fault(record: logging.LogRecord) -> bool:
    """False for the traceback of a request that was cut off because the server stops: no fault of the program."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError)
