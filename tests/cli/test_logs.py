"""The format of the server's log lines."""

import asyncio
import logging
import sys

from flowserver.cli.logs import LineFormatter, tells_of_a_fault


def _record(message, error=None):
    record = logging.LogRecord("flowserver.x", logging.WARNING, "", 0, message, (), error)
    record.created, record.msecs = 1_767_323_045.678, 678
    return record


def test_line_has_time_level_and_origin():
    assert LineFormatter().format(_record("hello")) == "2026-01-02T03:04:05.678Z WARNING flowserver.x: hello"


def test_no_text_of_a_client_begins_a_line():
    assert LineFormatter().format(_record("a\r\n2026 forged")).endswith("flowserver.x: a\\r\\n2026 forged")


def test_tracebacks_stay_readable():
    try:
        raise ValueError("why")
    except ValueError:
        text = LineFormatter().format(_record("failed", sys.exc_info()))
    assert text.splitlines()[1] == "Traceback (most recent call last):"
    assert text.splitlines()[-1] == "ValueError: why"


def test_requests_cut_off_by_the_shutdown_are_not_errors():
    cut_off, wrong = asyncio.CancelledError(), ValueError()
    assert not tells_of_a_fault(_record("failed", (type(cut_off), cut_off, None)))
    assert tells_of_a_fault(_record("failed", (type(wrong), wrong, None)))
    assert tells_of_a_fault(_record("said"))
