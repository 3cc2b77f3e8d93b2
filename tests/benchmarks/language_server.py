"""`python -m tests.benchmarks.language_server`: how soon `flowserver lsp` answers, over stdin and stdout.

The saga example, and a definition near the limits: 2,000 steps. Findings are timed from the change to their arrival,
without the time that the server waits for another change.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flowserver.base.limits import Limits
from flowserver.lsp.language_server import QUIET_SECONDS
from tests.benchmarks.figures import percentile
from tests.examples.conftest import EXAMPLES
from tests.lsp.editor import Editor


def large() -> str:
    """As many steps as a definition may have, each with a catch."""
    text = "version: v1\ntype: flow\nsteps:\n"
    for number in range(Limits().definition_steps_max - 1):
        text += f" - {{type: task, name: s{number}, resourceArn: 'acs:fc:::functions/f',\n"
        text += "   catch: [{errors: [E], goto: end}]}\n"
    return text + " - {type: succeed, name: end}\n"


def timed(act: Callable[[], Any], rounds: int, without: float = 0) -> str:
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        act()
        took.append(1000 * (time.perf_counter() - began - without))
    took.sort()
    return f"p50 {percentile(took, 0.5):.1f} ms, p99 {percentile(took, 0.99):.1f} ms"


def measure(editor: Editor, title: str, text: str, goto: str, rounds: int) -> None:
    name = "flow.yaml"
    editor.open(name, text)
    before = text[: text.index(goto) + len(goto)]
    place = editor.at(name, before.count("\n"), len(before.rpartition("\n")[2]))

    def change() -> None:
        editor.change(name, text)
        editor.findings(name)

    print(f"{title}, {text.count('name: ')} steps, {len(text) / 1024:.0f} KiB")
    for method in ("hover", "definition", "completion"):
        print(f"  {method}: {timed(lambda method=method: editor.request(f'textDocument/{method}', place), rounds)}")
    print(f"  findings after a change: {timed(change, max(3, rounds // 5), QUIET_SECONDS)}")
    editor.close(name)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, Editor(Path(folder)) as editor:
        began = time.perf_counter()
        editor.initialize()
        print(f"from the start of the process to its first answer: {time.perf_counter() - began:.2f} s")
        saga = (EXAMPLES / "saga" / "flow.yaml").read_text("utf-8")
        measure(editor, "saga", saga, "goto: ", given.rounds)
        measure(editor, "a large definition", large(), "goto: ", given.rounds)


if __name__ == "__main__":
    main()
