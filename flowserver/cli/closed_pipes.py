"""Output that no program reads any more: `flowserver flows list | head -1` closes the pipe after a line."""

import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unread_is_dropped() -> Iterator[None]:
    """What is printed inside may have no reader. It is dropped then, and the command goes on."""
    try:
        yield
    except BrokenPipeError:
        if not drop_unread():
            raise


def drop_unread() -> bool:
    """Let stdout and stderr lead nowhere where their reader has gone, also what they hold; whether there was any."""
    unread = [
        number for number in map(_number_of, (sys.stdout, sys.stderr)) if number is not None and _is_unread(number)
    ]
    for number in unread:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
    return bool(unread)


def _number_of(stream: object) -> int | None:
    try:
        return stream.fileno()  # type: ignore[attr-defined, no-any-return]
    except (AttributeError, io.UnsupportedOperation, ValueError):
        return None


def _is_unread(number: int) -> bool:
    poll = select.poll()
    poll.register(number, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
