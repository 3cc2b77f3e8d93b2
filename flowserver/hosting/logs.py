"""What the program prints: its own lines plain, the functions' log lines in the shape of Function Compute's logs."""

import logging
import sys
import time
from contextvars import ContextVar

plain = logging.getLogger("flowserver.hosting")
"""Lines of the program itself, and the `FC Invoke Start/End` lines."""

current_request_id: ContextVar[str] = ContextVar("current_request_id", default="")
"""Id of the call that the present thread or task works on."""


def set_up_logs() -> None:
    """Send everything to standard output; the root logger is the functions', as in the cloud, at level INFO."""
    own = logging.StreamHandler(sys.stdout)
    plain.handlers = [own]
    plain.setLevel(logging.INFO)
    plain.propagate = False

    of_functions = logging.StreamHandler(sys.stdout)
    of_functions.addFilter(_add_request_id)
    formatter = logging.Formatter(
        "%(asctime)s.%(msecs)03dZ %(request_id)s [%(levelname)s] %(message)s", "%Y-%m-%dT%H:%M:%S"
    )
    formatter.converter = time.gmtime
    of_functions.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [of_functions]
    root.setLevel(logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it tells of every request of ours


def _add_request_id(record: logging.LogRecord) -> bool:
    record.request_id = current_request_id.get()
    return True
