"""`python -m tests.benchmarks.flow_test_peers [--runs N]`: three test cases of flows, here and for other services.

The cases: a call that succeeds after two retries, a callback that does not come for 30 days, and work that is undone
after a failure. Prints the lines of the tests for each service, without the definitions, and the time of a whole
`flowserver test`, at the median of N. docs/maintainers/benchmarks.md has what the others took, and how to run them.
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

FOLDER = Path(__file__).parent
TESTS = {
    "flowserver test": ("flowserver/*.flowtest.yaml",),
    "Step Functions, mocked runs": ("step_functions/mocked_cases.py", "step_functions/mocks.json"),
    "Step Functions, TestState": ("step_functions/one_state_cases.py",),
    "Temporal, time skipping": ("temporal/time_skipping_cases.py",),
}
_LINE = re.compile(r"^\s*[^\s#]")


def main() -> int:
    """Count and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.flow_test_peers", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    for title, patterns in TESTS.items():
        files = [file for pattern in patterns for file in sorted(FOLDER.glob(pattern))]
        lines = [sum(bool(_LINE.match(line)) for line in file.read_text().splitlines()) for file in files]
        parts = ", ".join(f"{file.name} {count}" for file, count in zip(files, lines, strict=True))
        print(f"{title}: {sum(lines)} lines ({parts})")
    seconds, last = [], ""
    for _ in range(runs):
        began = time.perf_counter()
        command = [sys.executable, "-m", "flowserver", "test", str(FOLDER / "flowserver")]
        last = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
        seconds.append(time.perf_counter() - began)
    print(f"flowserver test: {median(seconds):.2f} s with the start of the program; its own figure: {last}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
