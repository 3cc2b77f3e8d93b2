"""The commands `flowserver queues …`."""

import base64
import binascii
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from flowserver.cli.document_output import show_document
from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.failures import CommandFailed
from flowserver.cli.remote.command import remote
from flowserver.cli.remote.flows import Limit, Yes, confirm
from flowserver.cli.remote.output import one_line, show_list, show_names, show_one
from flowserver.cli.remote.session import Session, read_text
from flowserver.cli.remote.times import seconds_of, shown_instant
from flowserver.cli.server_options import takes_choices
from flowserver.cli.tables import aligned
from flowserver.client.results import Queue

queues = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")]
Body = Annotated[str, typer.Argument(metavar="BODY|@FILE|-", help="The message's text; - is standard input.")]
Prefix = Annotated[str | None, typer.Option("--prefix", help="Only those whose names begin with this.")]
Peeked = Annotated[int, typer.Option("--limit", min=1, max=16, help="How many messages at most.")]
Delay = Annotated[
    str | None, typer.Option("--delay", metavar="DURATION", help="How long it stays invisible, such as 10m.")
]
Priority = Annotated[
    int | None, typer.Option("--priority", min=1, max=16, help="From 1, received first, to 16; default: 8.")
]
Base64 = Annotated[
    bool, typer.Option("--base64", help="Bodies are stored in Base64, as the message service's SDKs send them.")
]


@queues.callback()
@takes_choices
def _queues() -> None:
    """Look at queues, send to them, purge them."""


@queues.command("list")
@remote
def list_queues(session: Session, prefix: Prefix = None, limit: Limit = 50) -> None:
    """List queues with the number of their messages.

    \b
    Example:
      flowserver queues list
    """
    found: Iterable[Queue] = session.client.queues(prefix)
    if session.output != "name":
        found = (session.client.get_queue(each.name) for each in found)
    columns = {
        "QUEUE": lambda one: one.name,
        "READY": lambda one: str(one.ready),
        "RECEIVED": lambda one: str(one.received),
        "DELAYED": lambda one: str(one.delayed),
    }
    show_list(session, found, columns, lambda one: one.name, "There are no queues.", limit)


@queues.command("peek")
@remote
def peek_messages(session: Session, queue: QueueName, limit: Peeked = 1, base64: Base64 = False) -> None:
    """Show the messages that would be received next.

    They stay as they are.

    \b
    Examples:
      flowserver queues peek work --limit 10
      flowserver queues peek work --base64 -o json
    """
    found: list[dict[str, Any]] = session.client.peek_messages(session.about(queue), limit).document["messages"]
    shown = [{**each, "body": _decoded(each["body"])} for each in found] if base64 else found
    if session.output == "name":
        show_names(each["messageId"] for each in shown)
    elif session.output != "table":
        show_document(session.output, shown)
    elif shown:
        now = datetime.now(UTC)
        rows = [_row(each, now) for each in shown]
        typer.echo(aligned([["MESSAGE", "SENT", "RECEIVED", "BODY"], *rows]))
    else:
        session.note("No message can be received now.")


@queues.command("send")
@remote
def send_message(
    session: Session,
    queue: QueueName,
    body: Body,
    delay: Delay = None,
    priority: Priority = None,
    base64: Base64 = False,
) -> None:
    """Send a message to a queue.

    \b
    Examples:
      flowserver queues send work hello --base64
      flowserver queues send work @order.json --delay 10m
    """
    seconds = None if delay is None else int(seconds_of(delay, "--delay"))
    text = body_of(body, base64)
    sent = session.client.send_message(session.about(queue), text, delay_seconds=seconds, priority=priority)
    show_one(session, sent, sent.document["messageId"], f"sent {sent.document['messageId']}")


@queues.command("purge")
@remote
def purge_queue(session: Session, queue: QueueName, yes: Yes = False) -> None:
    """Delete the messages of a queue. The queue stays.

    \b
    Example:
      flowserver queues purge work --yes
    """
    found = session.client.get_queue(session.about(queue))
    count = found.ready + found.received + found.delayed
    confirm(f"Delete {count} messages of the queue {queue}?", yes)
    done = session.client.purge_queue(queue)
    show_one(session, done, queue, f"deleted {done.document['deleted']} messages of {queue}")


def body_of(text: str, is_base64: bool) -> str:
    """The text that is typed, of the file, or of standard input; as Base64 if it must be."""
    content = read_text(text.removeprefix("@")) if text == "-" or text.startswith("@") else text
    if not content:
        raise CommandFailed("the message is empty; it must have at least one character", ExitCode.USAGE)
    return base64.b64encode(content.encode()).decode() if is_base64 else content


def _decoded(body: str) -> str:
    """The text of a body; the body itself if it is no Base64 of a text."""
    try:
        return base64.b64decode(body, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return body


def _row(message: dict[str, Any], now: datetime) -> list[str]:
    sent = shown_instant(message["enqueuedTime"], now)
    return [message["messageId"], sent, str(message["dequeueCount"]), one_line(message["body"], 80)]
