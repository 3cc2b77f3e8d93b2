"""The three workflows for Temporal."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

MINUTE = timedelta(minutes=1)


@workflow.defn
class Payment:
    @workflow.run
    async def run(self, order: str) -> dict[str, bool]:
        policy = RetryPolicy(initial_interval=timedelta(seconds=2), maximum_attempts=4)
        return await workflow.execute_activity("charge", order, start_to_close_timeout=MINUTE, retry_policy=policy)


@workflow.defn
class Approval:
    def __init__(self) -> None:
        self._approved = False

    @workflow.signal
    def approve(self) -> None:
        self._approved = True

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity("ask", start_to_close_timeout=MINUTE)
        try:
            await workflow.wait_condition(lambda: self._approved, timeout=timedelta(days=30))
        except TimeoutError:
            raise ApplicationError("not approved in time", type="NotApprovedInTime") from None


@workflow.defn
class Trip:
    @workflow.run
    async def run(self) -> None:
        once = RetryPolicy(maximum_attempts=1)
        await workflow.execute_activity("book_hotel", start_to_close_timeout=MINUTE, retry_policy=once)
        try:
            await workflow.execute_activity("book_flight", start_to_close_timeout=MINUTE, retry_policy=once)
        except ActivityError as error:
            await workflow.execute_activity("cancel_hotel", start_to_close_timeout=MINUTE)
            raise ApplicationError("no flight", type="TripFailed") from error
