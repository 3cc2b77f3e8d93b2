"""The server's log: one line per record on stderr, for people or as JSON.

Both forms say which request a record belongs to, and which access key sent that request. A record whose message names
its values, such as `%(execution_id)s`, has them as fields in JSON.
"""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Mapping
from typing import Final

from flowserver.api import access_log
from flowserver.base.request_context import present_request

FORMAT = "%(asctime)s.%(msecs)03dZ %(levelname)-7s %(name)s: %(message)s"
TIME_FORMAT: Final = "%Y-%m-%dT%H:%M:%S"

_CHATTY = ("alembic", "asyncio", "uvicorn", "httpx", "httpcore")
"""Libraries whose informative lines say what our own lines say better."""


class LineFormatter(logging.Formatter):
    """UTC times; line breaks within a message are escaped, so that no input can forge a record."""

    def __init__(self) -> None:
        super().__init__(FORMAT, TIME_FORMAT)
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging calls it so
        """The record's line, without a traceback."""
        line = super().formatMessage(record).rstrip()
        further = [f"{name}={value}" for name, value in _request_fields().items() if value not in line]
        if further:
            line = f"{line} [{' '.join(further)}]"
        return line.replace("\r", "\\r").replace("\n", "\\n")


class JsonFormatter(logging.Formatter):
    """A JSON object in ASCII, on one line: time, level, logger, message, fields, and the traceback of an exception."""

    def __init__(self) -> None:
        super().__init__(datefmt=TIME_FORMAT)
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        """The record's line."""
        line: dict[str, object] = {
            "time": f"{self.formatTime(record, self.datefmt)}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_request_fields(),
        }
        if isinstance(record.args, Mapping):
            line |= record.args
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _request_fields() -> dict[str, str]:
    """The ids of the request that the present code serves."""
    request = present_request()
    if request is None:
        return {}
    fields = {"request_id": request.request_id, "key_id": request.key_id}
    return {name: value for name, value in fields.items() if value}


def set_up_logs(level: str, form: str = "human", *, has_access_log: bool = False) -> None:
    """Send records of `level` and above to stderr; libraries speak up from warnings on, or always at `debug`.

    `form` is human, json or auto; `has_access_log` adds a line for each request.
    """
    stream = logging.StreamHandler(sys.stderr)
    is_human = form == "human" or (form == "auto" and sys.stderr.isatty())
    stream.setFormatter(LineFormatter() if is_human else JsonFormatter())
    logging.basicConfig(level=level.upper(), handlers=[stream], force=True)
    for name in _CHATTY if level == "info" else ():
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(tells_of_a_fault)
    if has_access_log:
        access_log.turn_on()


def tells_of_a_fault(record: logging.LogRecord) -> bool:
    """False for the traceback of a request that was cut off because the server stops: no fault of the program."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError)
