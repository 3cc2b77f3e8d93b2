"""Kill the server while workers use a queue: acknowledged messages are received, deleted messages stay deleted."""

import random
import socket
import threading
from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path
from xml.etree.ElementTree import fromstring

import httpx

from tests.support.server import ServerProcess

KILLS = 2
STEPS_BETWEEN_KILLS = 40
WORKERS = 4
PATIENCE_SECONDS = 60
QUEUE = "/queues/work"
QUICK = "<Queue><VisibilityTimeout>1</VisibilityTimeout></Queue>"
NAMESPACE = "{http://mns.aliyuncs.com/doc/v1/}"


class Journal:
    """The answers that the workers got, and the signal for them to stop."""

    def __init__(self) -> None:
        self.url = ""
        self.sent: set[str] = set()
        self.received: Counter[str] = Counter()
        self.deleted: set[str] = set()
        self.stopping = threading.Event()
        self.errors: list[BaseException] = []
        self._steps = 0
        self._news = threading.Condition()

    def step(self) -> None:
        with self._news:
            self._steps += 1
            self._news.notify_all()

    def wait_for(self, further: int) -> None:
        """Return after that many further answers."""
        with self._news:
            until = self._steps + further
            assert self._news.wait_for(lambda: self._steps >= until or self.errors, PATIENCE_SECONDS)


class Worker(threading.Thread, ABC):
    """Uses the queue over connections of its own; repeats requests while the server is down."""

    def __init__(self, journal: Journal, number: int) -> None:
        super().__init__(daemon=True)
        self.journal = journal
        self.number = number

    def run(self) -> None:
        try:
            while not self.journal.stopping.is_set():
                try:
                    with httpx.Client(base_url=self.journal.url, timeout=PATIENCE_SECONDS, trust_env=False) as http:
                        self.work(http)
                except httpx.TransportError:
                    self.journal.stopping.wait(0.05)  # the server is just being started again
        except BaseException as error:
            self.journal.errors.append(error)
            self.journal.step()

    @abstractmethod
    def work(self, http: httpx.Client) -> None:
        """Use the queue until the signal to stop."""


class Sender(Worker):
    """Sends numbered bodies; a body whose answer was lost is not counted."""

    sent = 0

    def work(self, http: httpx.Client) -> None:
        while not self.journal.stopping.is_set():
            self.sent += 1
            body = f"{self.number}-{self.sent}"
            reply = http.post(f"{QUEUE}/messages", content=f"<Message><MessageBody>{body}</MessageBody></Message>")
            assert reply.status_code == 201, reply.text
            self.journal.sent.add(body)
            self.journal.step()


class Receiver(Worker):
    """Receives by long polls and deletes most messages; the others become visible again."""

    def work(self, http: httpx.Client) -> None:
        dice = random.Random(self.number)
        while not self.journal.stopping.is_set():
            for body, handle in receive(http, seconds=1):
                self.journal.received[body] += 1
                if dice.random() < 0.8:
                    delete(http, self.journal, body, handle)
                self.journal.step()


def receive(http: httpx.Client, seconds: int) -> list[tuple[str, str]]:
    """Bodies and receipt handles; none if nothing arrived in time."""
    reply = http.get(f"{QUEUE}/messages?numOfMessages=8&waitseconds={seconds}")
    if reply.status_code == 404:
        return []
    assert reply.status_code == 200, reply.text
    return [
        (message.findtext(f"{NAMESPACE}MessageBody", ""), message.findtext(f"{NAMESPACE}ReceiptHandle", ""))
        for message in fromstring(reply.content)
    ]


def delete(http: httpx.Client, journal: Journal, body: str, handle: str) -> None:
    """Delete a message; it may be visible again already if that took too long."""
    assert body not in journal.deleted, f"{body} was received again after its deletion"
    reply = http.delete(f"{QUEUE}/messages?ReceiptHandle={handle}")
    if reply.status_code == 204:
        journal.deleted.add(body)
    else:
        assert (reply.status_code, "MessageNotExist" in reply.text) == (404, True), reply.text


def test_a_killed_server_loses_no_message_and_redelivers_messages_not_deleted(any_url: str) -> None:
    dice = random.Random(20261122)
    journal = Journal()
    server = ServerProcess(any_url, "--migrate")
    journal.url = server.url
    made = httpx.put(f"{server.url}{QUEUE}", content=QUICK, trust_env=False)
    assert made.status_code == 201, made.text
    workers = [(Sender if number % 2 else Receiver)(journal, number) for number in range(WORKERS)]
    for worker in workers:
        worker.start()
    for _ in range(KILLS):
        journal.wait_for(dice.randrange(1, STEPS_BETWEEN_KILLS))
        server.kill()
        server = ServerProcess(any_url, port=server.port)
    journal.wait_for(STEPS_BETWEEN_KILLS)
    journal.stopping.set()
    for worker in workers:
        worker.join(PATIENCE_SECONDS)
    assert journal.errors == []
    with server, httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, trust_env=False) as http:
        while found := receive(http, seconds=3):  # more than the visibility time-out
            for body, handle in found:
                journal.received[body] += 1
                delete(http, journal, body, handle)
    assert journal.sent
    # Not "and was deleted": a kill may have happened between a deletion and its answer.
    assert journal.sent <= journal.received.keys(), "acknowledged messages were received"
    assert max(journal.received.values()) > 1, "messages not deleted became visible again"


def test_a_server_that_stops_answers_waiting_clients(tmp_path: Path) -> None:
    with ServerProcess(f"sqlite:///{tmp_path}/flowserver.db") as server:
        assert httpx.put(f"{server.url}{QUEUE}", trust_env=False).status_code == 201
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as poll:
            poll.sendall(f"GET {QUEUE}/messages?waitseconds=30 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert httpx.get(f"{server.url}{QUEUE}", trust_env=False).status_code == 200
            server.stop()
            answer = b"".join(iter(lambda: poll.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 404"), answer
    assert b"<Code>MessageNotExist</Code>" in answer
