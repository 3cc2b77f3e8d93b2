"""/v1/queues and /v1/topics: for people who look after them. Workers use the message service's API."""

from typing import Annotated, Final

from fastapi import Depends, Query
from starlette.responses import Response

from flowserver.api.rest.answers import answer, page_answer
from flowserver.api.rest.bodies import json_body
from flowserver.api.rest.described_bodies import json_request
from flowserver.api.rest.models.queues import (
    DepthQuery,
    ListedQueue,
    ListedTopic,
    PeekedMessage,
    PeekedMessages,
    PeekQuery,
    PublishMessage,
    PurgedQueue,
    Queue,
    QueuePage,
    SendMessage,
    SentMessage,
    Topic,
    TopicPage,
    TopicSummary,
)
from flowserver.api.rest.parameters import QueueName, TopicName
from flowserver.api.rest.problems import problems
from flowserver.api.rest.route import Ops, rest_router
from flowserver.base.errors import (
    MessageNotExist,
    MissingParameter,
    QueueNotExist,
    TopicNotExist,
    UnsupportedMediaType,
)
from flowserver.store.integrity.disk_reserve import DiskAlmostFull

router = rest_router("", "queues")

LISTED: Final = 60
"""Items on a page if the caller does not say."""


@router.get("/queues", summary="List queues", response_model=QueuePage, responses=problems())
async def list_queues(operations: Ops, query: Annotated[DepthQuery, Query()]) -> Response:
    """Queues by name, with how deep they are if asked. Queues that a broker keeps are not among them."""
    page = await operations.queues.list(prefix=query.prefix, marker=query.next_token or "", limit=query.limit or LISTED)
    depths = await operations.queues.depths([each.name for each in page.items]) if query.depth else {}
    return await page_answer(operations, page, "queues", lambda row: ListedQueue.listed(row, depths.get(row.name)))


@router.get("/queues/{queue}", summary="Show a queue", response_model=Queue, responses=problems(QueueNotExist))
async def get_queue(queue: QueueName, operations: Ops) -> Response:
    """A queue with its attributes, and how many messages it has."""
    return answer(Queue.counted(*await operations.queues.describe(queue)))


@router.get(
    "/queues/{queue}/messages",
    summary="Peek at messages",
    response_model=PeekedMessages,
    responses=problems(QueueNotExist),
)
async def peek_messages(queue: QueueName, operations: Ops, query: Annotated[PeekQuery, Query()]) -> Response:
    """The messages that would be received next. They stay as they are, and other callers can receive them."""
    try:
        found = await operations.queues.peek(queue, count=query.limit)
    except MessageNotExist:
        found = []
    return answer(PeekedMessages(messages=[PeekedMessage.of(each) for each in found]))


@router.post(
    "/queues/{queue}/messages",
    summary="Send a message",
    response_model=SentMessage,
    status_code=201,
    responses=problems(MissingParameter, QueueNotExist, UnsupportedMediaType, DiskAlmostFull),
    openapi_extra=json_request(SendMessage),
)
async def send_message(
    queue: QueueName, operations: Ops, wanted: Annotated[SendMessage, Depends(json_body(SendMessage))]
) -> Response:
    """Send a message. Its body is stored as it is: what SDKs of the message service read must be Base64."""
    [sent] = await operations.queues.send(queue, [wanted.message()])
    return answer(SentMessage(message_id=sent.message_id), 201)


@router.post(
    "/queues/{queue}/purge", summary="Purge a queue", response_model=PurgedQueue, responses=problems(QueueNotExist)
)
async def purge_queue(queue: QueueName, operations: Ops) -> Response:
    """Delete the messages of a queue, those too that were received or are delayed. The queue stays."""
    return answer(PurgedQueue(deleted=await operations.queues.purge(queue)))


@router.get("/topics", summary="List topics", response_model=TopicPage, responses=problems())
async def list_topics(operations: Ops, query: Annotated[DepthQuery, Query()]) -> Response:
    """Topics by name, with how many deliveries have not arrived if asked."""
    page = await operations.topics.list(prefix=query.prefix, marker=query.next_token or "", limit=query.limit or LISTED)
    depths = await operations.topics.depths([each.name for each in page.items]) if query.depth else {}
    return await page_answer(operations, page, "topics", lambda row: ListedTopic.listed(row, depths.get(row.name)))


@router.get("/topics/{topic}", summary="Show a topic", response_model=Topic, responses=problems(TopicNotExist))
async def get_topic(topic: TopicName, operations: Ops) -> Response:
    """A topic with the names of its subscriptions, and how many messages are not delivered yet."""
    row, undelivered = await operations.topics.describe(topic)
    page = await operations.subscriptions.list(topic, prefix="", marker="", limit=None)
    shown = TopicSummary.of(row).model_dump(by_alias=False)
    return answer(Topic(**shown, undelivered=undelivered, subscriptions=[each.name for each in page.items]))


@router.post(
    "/topics/{topic}/messages",
    summary="Publish a message",
    response_model=SentMessage,
    status_code=201,
    responses=problems(MissingParameter, TopicNotExist, UnsupportedMediaType, DiskAlmostFull),
    openapi_extra=json_request(PublishMessage),
)
async def publish_message(
    topic: TopicName, operations: Ops, wanted: Annotated[PublishMessage, Depends(json_body(PublishMessage))]
) -> Response:
    """Publish a message to the topic's subscriptions, all of them or those whose filter is its tag."""
    published = await operations.topics.publish(topic, wanted.body, wanted.tag)
    return answer(SentMessage(message_id=published.message_id), 201)
