"""Records of the audit for commands that change the database themselves."""

import getpass
import os
import socket

from sqlalchemy import Connection

from flowserver.base.clock import SystemClock
from flowserver.store.audit import OK, AuditRecord, begin_record, record_id_at


def record_command(connection: Connection, operation: str, named: str) -> None:
    """Record, in the transaction of the change itself, what the command does to the object of that path."""
    now_ms = SystemClock().now_ms()
    record = AuditRecord(
        record_id=record_id_at(now_ms),
        at=now_ms,
        label=_user(),
        api="CLI",
        remote=socket.gethostname(),
        operation=operation,
        object=named,
        result=OK,
    )
    begin_record(connection, record)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        return str(os.getuid())
