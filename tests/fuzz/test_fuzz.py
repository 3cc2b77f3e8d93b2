"""Generated requests to every API cause no server error. `python -m tests.fuzz` sends many more."""

import asyncio

from tests.fuzz.run import send_requests
from tests.support.server import ServerProcess

SEED = 20_261_124
REQUESTS = 3_000


def test_no_request_causes_a_server_error(sqlite_url):
    with ServerProcess(sqlite_url) as server:
        findings = asyncio.run(send_requests(server.url, REQUESTS, SEED))
    assert not findings.wrong, "\n".join(findings.wrong)
    assert '"level": "ERROR"' not in server.log
    assert sum(count for status, count in findings.statuses.items() if status < 300) > REQUESTS / 4, findings.statuses
