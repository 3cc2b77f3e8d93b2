"""The commands `flowserver topics …`."""

from collections.abc import Iterable
from typing import Annotated

import typer

from flowserver.cli.remote.command import remote
from flowserver.cli.remote.flows import Limit
from flowserver.cli.remote.output import show_list, show_one
from flowserver.cli.remote.queues import Base64, Body, Prefix, body_of
from flowserver.cli.remote.session import Session
from flowserver.cli.server_options import takes_choices
from flowserver.client.results import Topic

topics = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
Tag = Annotated[str | None, typer.Option("--tag", help="What subscriptions filter by.")]


@topics.callback()
@takes_choices
def _topics() -> None:
    """Look at topics, and publish to them."""


@topics.command("list")
@remote
def list_topics(session: Session, prefix: Prefix = None, limit: Limit = 50) -> None:
    """List topics with their subscriptions.

    \b
    Example:
      flowserver topics list
    """
    found: Iterable[Topic] = session.client.topics(prefix)
    if session.output != "name":
        found = (session.client.get_topic(each.name) for each in found)
    columns = {
        "TOPIC": lambda one: one.name,
        "UNDELIVERED": lambda one: str(one.undelivered),
        "SUBSCRIPTIONS": lambda one: ", ".join(one.subscriptions),
    }
    show_list(session, found, columns, lambda one: one.name, "There are no topics.", limit)


@topics.command("publish")
@remote
def publish_message(session: Session, topic: TopicName, body: Body, tag: Tag = None, base64: Base64 = False) -> None:
    """Publish a message to the subscriptions of a topic.

    \b
    Examples:
      flowserver topics publish orders hello --tag paid
      flowserver topics publish orders @order.json
    """
    sent = session.client.publish_message(session.about(topic), body_of(body, base64), tag=tag)
    show_one(session, sent, sent.document["messageId"], f"published {sent.document['messageId']}")
