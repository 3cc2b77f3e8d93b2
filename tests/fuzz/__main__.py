"""Generated requests to every API of a real server: `python -m tests.fuzz [--requests N] [--seed N]`.

Prints how often each status was answered, and each finding: a server error, a reply that shows code, a request without
a reply, an error in the server's log, or a database that `flowserver doctor --deep` calls sick. The exit code is 1 if
there is one.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile

from tests.fuzz.run import send_requests
from tests.support.server import ServerProcess


def main() -> int:
    """Send the requests, look at log and database."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/flows.db"
        with ServerProcess(url) as server:
            findings = asyncio.run(send_requests(server.url, arguments.requests, arguments.seed))
        doctor = [sys.executable, "-m", "flowserver", "doctor", "--deep", "--database-url", url]
        checked = subprocess.run(doctor, check=False, capture_output=True, text=True)
    print(", ".join(f"{status}: {count:,}" for status, count in sorted(findings.statuses.items())))
    print(*findings.wrong, sep="\n")
    errors = [line for line in server.log.splitlines() if '"level": "ERROR"' in line]
    print(*errors[:20], sep="\n")
    print(checked.stdout.splitlines()[-1])
    print(f"{findings.wrong_count} wrong replies, {len(errors)} errors in the log")
    return 1 if findings.wrong or errors or checked.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
