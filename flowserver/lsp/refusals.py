"""Refusals of what an editor asks for. The editor shows them; they are no faults, so the log has nothing of them."""

import logging

from pygls.exceptions import JsonRpcInvalidParams
from pygls.protocol import JsonRPCProtocol


class Refused(JsonRpcInvalidParams):
    """What is asked for cannot be done; the message says why."""


def keep_refusals_from_the_log() -> None:
    """pygls logs a traceback for each error that a request is answered with."""
    logging.getLogger(JsonRPCProtocol.__module__).addFilter(_is_no_refusal)


def _is_no_refusal(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], Refused)
