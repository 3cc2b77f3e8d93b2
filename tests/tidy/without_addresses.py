"""`python -m tests.tidy.without_addresses FILE...`: removes addresses from lock files of npm.

It writes whom to fund, though nothing of that is needed to install a package.
"""

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    for file in map(Path, sys.argv[1:]):
        lock = json.loads(file.read_text("utf-8"))
        for package in lock["packages"].values():
            package.pop("funding", None)
        file.write_text(json.dumps(lock, indent=2, ensure_ascii=False) + "\n", "utf-8")
