"""Sends generated requests to a real server, and looks for what no request may cause."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from tests.benchmarks.client import Client, Reply
from tests.fuzz.requests import FLOW, WAITING, Request, Requests

IN_FLIGHT = 16
REPLY_SECONDS_MAX = 60.0
"""A long poll may take 30 seconds; a request that takes longer hangs."""

SHOWN_MAX = 20


@dataclass
class Findings:
    """What went wrong, and how often each status was answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """At most SHOWN_MAX."""

    wrong_count: int = 0

    def add(self, request: Request, what: str) -> None:
        """A finding."""
        self.wrong_count += 1
        if len(self.wrong) < SHOWN_MAX:
            self.wrong.append(f"{what}\n    {request.method} {request.path[:300]}\n    {request.body[:600]!r}")


async def _reply_to(request: Request, client: Client) -> Reply | None:
    """The reply; None if there is none. After an error the server may close a connection that the client takes next."""
    for _ in range(IN_FLIGHT):
        try:
            async with asyncio.timeout(REPLY_SECONDS_MAX):
                kind = request.kind or "text/plain"
                return await client.send(request.method, request.path, request.body, kind, request.headers)
        except TimeoutError:
            return None
        except OSError:
            continue
    return None


async def send_requests(url: str, count: int, seed: int) -> Findings:
    """Send `count` requests, IN_FLIGHT at a time. Wrong are server errors other than 503, replies that show
    code, and requests without a reply.
    """
    client, stream, findings = Client(url), Requests(seed), Findings()
    for name, definition in (("f", FLOW), ("g", WAITING)):
        await client.put(f"/v1/flows/{name}", {"definition": definition})
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            request = stream.next()
            reply = await _reply_to(request, client)
            if reply is None:
                findings.add(request, "no reply")
                continue
            findings.statuses[reply.status] += 1
            if reply.status >= 500 and reply.status != 503:
                findings.add(request, f"{reply.status}: {reply.body[:300]!r}")
            if b"Traceback" in reply.body or b'File "' in reply.body:
                findings.add(request, f"shows code: {reply.body[:300]!r}")

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    client.close()
    return findings
