"""Kill the server at any moment: a published message reaches every subscriber, and a queue gets it once."""

import random
import threading
from xml.etree.ElementTree import Element

import httpx
import pytest
from defusedxml.ElementTree import fromstring

from tests.support.push_server import Push, PushServer
from tests.support.server import ServerProcess

KILLS = 2
PUSHES_BETWEEN_KILLS = 40
PATIENCE_SECONDS = 60


class Endpoint:
    """Counts its messages, and refuses now and then; `enough` is set after the expected number."""

    def __init__(self, dice: random.Random) -> None:
        self.seen: set[str] = set()
        self.enough = threading.Event()
        self.until = 0
        self._count = 0
        self._dice = dice

    def answer(self, push: Push) -> int:
        self._count += 1
        if self._count >= self.until:
            self.enough.set()
        if self._dice.random() < 0.1:
            return 503
        self.seen.add(push.body)
        return 200

    def expect(self, further: int) -> None:
        self.enough.clear()
        self.until = self._count + further


class Publisher:
    """Publishes message after message until the server is down; records the acknowledged ones."""

    def __init__(self) -> None:
        self.acknowledged: set[str] = set()
        self.tried: set[str] = set()
        self._number = 0

    def publish_until_killed(self, url: str) -> None:
        with httpx.Client(base_url=url, timeout=PATIENCE_SECONDS, trust_env=False) as http:
            try:
                while True:
                    self.publish(http)
            except httpx.TransportError:
                pass

    def publish(self, http: httpx.Client) -> None:
        self._number += 1
        body = f"message {self._number}"
        self.tried.add(body)
        reply = http.post("/topics/news/messages", content=f"<Message><MessageBody>{body}</MessageBody></Message>")
        assert reply.status_code == 201, reply.text
        self.acknowledged.add(body)


def prepare(url: str, endpoint: str) -> None:
    with httpx.Client(base_url=url, trust_env=False) as http:
        queue = "<Queue><VisibilityTimeout>43200</VisibilityTimeout></Queue>"
        assert http.put("/queues/once", content=queue).status_code == 201
        assert http.put("/topics/news").status_code == 201
        for name, target in (("web", endpoint), ("queue", "acs:mns:::queues/once")):
            subscription = (
                f"<Subscription><Endpoint>{target}</Endpoint><NotifyContentFormat>SIMPLIFIED</NotifyContentFormat>"
                "<NotifyStrategy>EXPONENTIAL_DECAY_RETRY</NotifyStrategy></Subscription>"
            )
            assert http.put(f"/topics/news/subscriptions/{name}", content=subscription).status_code == 201


def receive(http: httpx.Client, seconds: int) -> list[str]:
    """Bodies in the queue, once there are some or the time is over."""
    reply = http.get("/queues/once/messages", params={"numOfMessages": 16, "waitseconds": seconds})
    if reply.status_code == 404:
        return []
    root: Element = fromstring(reply.content)
    return [each.text or "" for each in root.iter() if each.tag.endswith("MessageBody")]


@pytest.mark.slow
def test_published_messages_arrive_after_kills_at_any_moment(any_url: str) -> None:
    dice = random.Random(20261122)
    endpoint, publisher = Endpoint(dice), Publisher()
    with PushServer(endpoint.answer) as pushes:
        server = ServerProcess(any_url, "--migrate")
        prepare(server.url, f"{pushes.url}/hook")
        for _ in range(KILLS):
            endpoint.expect(dice.randrange(1, PUSHES_BETWEEN_KILLS))
            publishing = threading.Thread(target=publisher.publish_until_killed, args=(server.url,))
            publishing.start()
            assert endpoint.enough.wait(PATIENCE_SECONDS)
            server.kill()
            publishing.join()
            server = ServerProcess(any_url)
        with server, httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, trust_env=False) as http:
            received: list[str] = []
            while not publisher.acknowledged <= set(received):
                bodies = receive(http, 30)
                assert bodies, publisher.acknowledged - set(received)
                received += bodies
            while not publisher.acknowledged <= endpoint.seen:
                pushes.next()
            received += receive(http, 0)
    assert len(publisher.acknowledged) >= KILLS
    assert len(received) == len(set(received)), "a message was received twice"
    assert set(received) | endpoint.seen <= publisher.tried
