"""People who report on tasks: early, late or twice, and until a server has acknowledged the report."""

import asyncio
from random import Random

from tests.chaos.client import Client
from tests.chaos.journal import Call, Journal, Report
from tests.simulation.functions import Answer

AGAIN_SECONDS = 0.3


class Reporter:
    """Makes the reports of a run."""

    def __init__(self, client: Client, journal: Journal, random: Random) -> None:
        self._client = client
        self._journal = journal
        self._random = random
        self._tasks: set[asyncio.Task[None]] = set()

    def accept(self, call: Call, token: str, answer: Answer) -> asyncio.Event | None:
        """Report this after a random time; see `callees.Accept`."""
        manner = self._random.choice(["early", "late", "twice"])
        done = asyncio.Event()
        seconds = 0.0 if manner == "early" else 1.5 * self._random.random()
        task = asyncio.create_task(self._report(call, token, answer, seconds, 1 + (manner == "twice"), done))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return done if manner == "early" else None

    async def stop(self) -> None:
        """Give up on reports that cannot be made any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _report(
        self, call: Call, token: str, answer: Answer, seconds: float, times: int, done: asyncio.Event
    ) -> None:
        await asyncio.sleep(seconds)
        for _ in range(times):
            await self._report_once(call, token, answer)
            done.set()

    async def _report_once(self, call: Call, token: str, answer: Answer) -> None:
        path, body = "/v1/tasks/succeed", {"taskToken": token, "output": answer.returns}
        if answer.raises is not None:
            path, body = "/v1/tasks/fail", {"taskToken": token, "error": answer.raises, "cause": answer.cause}
        while True:
            reply = await self._client.ask("POST", path, body)
            if reply.code != "TaskInvalidState":  # between two attempts; the next attempt takes it
                break
            await asyncio.sleep(AGAIN_SECONDS)
        if reply.status == 200:
            succeeded = answer.raises is None
            report = Report(call.flow, call.execution, call.step, reply.body["eventId"], succeeded)
            self._journal.reports.append(report)
        elif reply.code == "TaskAlreadyCompleted":
            self._journal.already_reported += 1
        else:
            self._journal.complaints.append(f"a report on {call} was answered {reply.status} {reply.body}")

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._journal.complaints.append(f"a report could not be made: {task.exception()!r}")
