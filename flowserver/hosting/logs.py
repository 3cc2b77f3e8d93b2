"""What the program prints: its own lines plain, the functions' log lines in the shape of Function Compute's logs."""

import logging
import sys
import time
from contextvars import ContextVar

plain = logging.getLogger("flowserver.hosting")
"""Lines of the program itself, and the `FC Invoke Start/End` lines."""

current_request_id: ContextVar[str] = ContextVar("current_request_id", default="")
"""Id of the call that the present thread or task works on."""


TAIL_BYTES_MAX = 4096
"""How much of a call's log its caller may have."""

_kept_log: ContextVar[list[str] | None] = ContextVar("kept_log", default=None)


def keep_log() -> list[str]:
    """From now on, keep what the present task, and what it begins, logs; returns the list of the lines to come."""
    lines: list[str] = []
    _kept_log.set(lines)
    return lines


def tail_of(lines: list[str]) -> bytes:
    """The end of a log, at most TAIL_BYTES_MAX."""
    return "".join(f"{line}\n" for line in list(lines)).encode("utf-8", "replace")[-TAIL_BYTES_MAX:]


class _Keeper(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        lines = _kept_log.get()
        if lines is not None:
            lines.append(self.format(record))


def set_up_logs() -> None:
    """Send everything to standard output; the root logger is the functions', as in the cloud, at level INFO."""
    own = logging.StreamHandler(sys.stdout)
    plain.handlers = [own, _Keeper()]
    plain.setLevel(logging.INFO)
    plain.propagate = False

    of_functions = logging.StreamHandler(sys.stdout)
    kept = _Keeper()
    formatter = logging.Formatter(
        "%(asctime)s.%(msecs)03dZ %(request_id)s [%(levelname)s] %(message)s", "%Y-%m-%dT%H:%M:%S"
    )
    formatter.converter = time.gmtime
    for each in (of_functions, kept):
        each.addFilter(_add_request_id)
        each.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [of_functions, kept]
    root.setLevel(logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every request of ours


def _add_request_id(record: logging.LogRecord) -> bool:
    record.request_id = current_request_id.get()
    return True
