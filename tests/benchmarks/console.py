"""How quick the console is, in a real Chromium before a real server.

`python -m tests.benchmarks.console [--executions N] [--repeat N] [--load N] [--only NAME,...]`

`--load N` keeps N executions of W1 (five function calls) in flight beside it, made by a process of its own. All share
the machine's cores: the browser too, which draws without a graphics card here.

Times begin with the navigation or the change, and end with the frame after the one in which the page shows the result.
"""

import argparse
import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, CDPSession, Page

from tests.benchmarks import definitions
from tests.benchmarks.executions_list import fill_flows
from tests.benchmarks.figures import MIB, percentile
from tests.console.browser.chromium import running_chromium
from tests.console.seeded.shop import PAGES, Shop, answer
from tests.support.function_server import FunctionServer
from tests.support.server import ServerProcess

WINDOW = {"width": 1440, "height": 900}
OPENED = ("overview", "executions", "execution-failed", "flow", "editor", "waiting", "functions", "queues", "server")

LONG = """\
version: v1
type: flow
steps:
  - type: foreach
    name: each
    iterationMapping: {collection: $.items, item: item}
    steps: [%s]
    outputMappings: [{target: done, source: true}]
"""
"""A foreach of pass steps; an iteration has two events, and two more for each step."""

ASKING = """\
version: v1
type: flow
steps:
"""
ASK = """\
  - type: task
    name: ask%d
    pattern: waitForCallback
    resourceArn: acs:fc:::services/shop/functions/notify
    inputMappings: [{target: taskToken, source: $context.task.token}]
    outputMappings: []
"""

IN_PAGE = """
window.until = (isTrue) => new Promise((done) => {
  const look = () => isTrue() ? requestAnimationFrame(() => done(performance.now())) : requestAnimationFrame(look);
  look();
});
window.isSettled = () => {
  const main = document.querySelector("main");
  return Boolean(main?.textContent.trim()) && !main.querySelector(".loading, [aria-busy=true]");
};
window.firstPaint = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
"""

SHOWN = """() => until(() => isSettled()
  && document.querySelector("[role=listbox][aria-label=Events] [role=option][id]")
  && document.querySelector(".graph-node") && document.querySelector("[role=treegrid] [role=row]"))"""

FILTERED = """async ([url, word]) => {
  const began = performance.now();
  history.pushState(null, "", url);
  dispatchEvent(new PopStateEvent("popstate"));
  const rows = () => [...document.querySelectorAll(".table-rows [role=row]")];
  const isFiltered = () => rows().length > 0 && rows().every((row) => row.textContent.includes(word));
  const shown = await until(() => isSettled() && isFiltered());
  return shown - began;
}"""

SCROLLED = """async () => {
  const list = document.querySelector("[role=listbox][aria-label=Events]");
  const frames = [];
  let last = await new Promise(requestAnimationFrame);
  for (let step = 0; step <= 200; step++) {
    list.scrollTop = (list.scrollHeight * step) / 200;
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - last);
    last = now;
  }
  return frames;
}"""


class Report:
    """A table in Markdown, printed as its rows are known."""

    def __init__(self) -> None:
        print("| | measured | goal |\n|---|---|---|", flush=True)

    def add(self, what: str, measured: str, goal: str = "") -> None:
        """Print one row."""
        print(f"| {what} | {measured} | {goal} |", flush=True)


def _opened(browser: Browser, server_url: str) -> Page:
    page = browser.new_context(base_url=server_url, viewport=WINDOW).new_page()
    page.set_default_timeout(300_000)
    page.add_init_script(IN_PAGE)
    return page


def _times(milliseconds: list[float]) -> str:
    return f"p50 {percentile(milliseconds, 0.5):.0f} ms, p95 {percentile(milliseconds, 0.95):.0f} ms"


def first_paint(browser: Browser, server: ServerProcess, report: Report, repeat: int) -> None:
    """Each page opened with an empty cache, then again in the same session."""
    for name in OPENED:
        seen: dict[str, list[float]] = {"cold": [], "warm": [], "cold whole": [], "warm whole": []}
        for _ in range(repeat):
            page = _opened(browser, server.url)
            for kind in ("cold", "warm"):
                page.goto(PAGES[name], wait_until="commit")
                whole = page.evaluate("() => until(isSettled)")
                seen[f"{kind} whole"].append(whole)
                seen[kind].append(page.evaluate("() => until(firstPaint).then(firstPaint)"))
            page.context.close()
        report.add(
            f"first paint of {name}: cold / warm; with its data",
            f"p50 {percentile(seen['cold'], 0.5):.0f} / {percentile(seen['warm'], 0.5):.0f} ms; "
            f"{percentile(seen['cold whole'], 0.5):.0f} / {percentile(seen['warm whole'], 0.5):.0f} ms",
            "≤ 400 / 150 ms",
        )


def executions_list(browser: Browser, report: Report, repeat: int, count: int) -> None:
    """Filters of a list of many executions, on a server of its own."""
    with tempfile.TemporaryDirectory() as data:
        url = f"sqlite:///{data}/flowserver.db"
        ServerProcess(url).stop()  # which creates the tables
        fill_flows(url, count)
        with ServerProcess(url) as server:
            page = _opened(browser, server.url)
            page.goto("/executions")
            page.evaluate("() => until(isSettled)")
            took = []
            for number in range(repeat):
                flow = f"many-{chr(ord('a') + number % 20)}"
                for query, word in (("status=failed", "old-"), (f"flow={flow}", flow), ("status=succeeded", "run-")):
                    took.append(page.evaluate(FILTERED, [f"/executions?{query}", word]))
            page.context.close()
    report.add(f"executions list of {count:,}: filter to painted", _times(took), "p95 ≤ 200 ms")


def long_execution(browser: Browser, server: ServerProcess, rest: httpx.Client, report: Report, repeat: int) -> None:
    """An execution of 100,000 events, and a foreach of 10,000."""
    shop = Shop(rest, None)
    steps = ", ".join(f"{{type: pass, name: p{number}}}" for number in range(4))
    shop.flow("events", LONG % steps)
    shop.flow("wide", LONG % "{type: pass, name: p}")
    for flow, what, goals in (
        ("events", "execution of 100,000 events", ("≤ 800 ms", "≤ 150 MiB", "none over 50 ms")),
        ("wide", "foreach of 10,000", ("≤ 800 ms", "", "")),
    ):
        shop.start(flow, "e", {"items": list(range(10_000))}, wait=0)
        while (shown := rest.get(f"/v1/flows/{flow}/executions/e?wait=60").json())["status"] == "Running":
            pass
        assert shown["status"] == "Succeeded", shown
        seen: dict[str, list[float]] = {"new": [], "known": []}
        for _ in range(1 + repeat):
            page = _opened(browser, server.url)
            for kind in ("new", "known"):
                page.goto(f"/executions/{flow}/e", wait_until="commit")
                seen[kind].append(page.evaluate(SHOWN))
            page.context.close()
        first, *new = seen["new"]
        report.add(f"{what}: open to interactive", _times(seen["known"]), goals[0])
        report.add(f"{what}: the same by a browser that does not know the console yet", _times(new))
        report.add(f"{what}: the first time, when the server makes its step summary", f"{first:.0f} ms")
        page = _opened(browser, server.url)
        page.goto(f"/executions/{flow}/e", wait_until="commit")
        page.evaluate(SHOWN)
        frames = page.evaluate(SCROLLED)
        report.add(
            f"{what}: scrolling all events",
            f"longest frame {max(frames):.0f} ms, p95 {percentile(frames, 0.95):.0f} ms",
            goals[2],
        )
        report.add(f"{what}: memory of the tab after that", _memory(browser, page), goals[1])
        page.context.close()


def _memory(browser: Browser, page: Page) -> str:
    """The tab's process, less the pages that it shares with others; and the heap of the scripts."""
    page.request_gc()
    session: CDPSession = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    private = [_private_bytes(each["id"]) for each in processes if each["type"] == "renderer"]
    return f"process {max(private) / MIB:.0f} MiB, of that scripts {metrics['JSHeapUsedSize'] / MIB:.0f} MiB"


def _private_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines()[1:]
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    return sizes["Private_Clean"] + sizes["Private_Dirty"]


def change(browser: Browser, server: ServerProcess, rest: httpx.Client, report: Report, repeat: int) -> None:
    """Steps of one open execution succeed one after another; from the request that reports it to the repainted node."""
    count = 5 * repeat
    shop = Shop(rest, None)
    shop.flow("asking", ASKING + "".join(ASK % number for number in range(count)))
    shop.start("asking", "e", {}, wait=0)
    page = _opened(browser, server.url)
    page.goto("/executions/asking/e", wait_until="commit")
    page.evaluate(SHOWN)
    took = []
    for number in range(count):
        while not (tasks := rest.get("/v1/tasks", params={"flow": "asking"}).json()["tasks"]):
            pass
        page.evaluate(
            """(number) => {
              const node = () => document.querySelector(`.graph-node[data-path="ask${number}"]`);
              const hasSucceeded = () => node()?.getAttribute("aria-label").includes("Succeeded");
              window.painted = until(hasSucceeded).then(() => Date.now());
            }""",
            number,
        )
        began = time.time()
        rest.post("/v1/tasks/succeed", json={"taskToken": tasks[0]["taskToken"], "output": {}}).raise_for_status()
        took.append(page.evaluate("window.painted") - began * 1000)
    page.context.close()
    report.add("a step's change on the server → painted", _times(took), "p95 ≤ 250 ms")


def _keep_in_flight(server_url: str, count: int) -> None:
    """W1 without end: executions of five function calls."""
    with FunctionServer() as functions:
        functions.register(server_url, "bench/echo")
        body = {"definition": definitions.calls()}
        httpx.put(f"{server_url}/v1/flows/w1", json=body, trust_env=False).raise_for_status()

        def run() -> None:
            with httpx.Client(base_url=server_url, trust_env=False, timeout=None) as http:
                while True:
                    http.post("/v1/flows/w1/executions?wait=60", json={"input": {}}).raise_for_status()

        for _ in range(count):
            threading.Thread(target=run, daemon=True).start()
        threading.Event().wait()


@contextmanager
def _load(server_url: str, count: int) -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(
        target=_keep_in_flight, args=(server_url, count), daemon=True
    )
    if count:
        process.start()
    yield
    if count:
        process.terminate()


def main() -> None:
    """Measure what the options ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--only", default="paint,list,long,change")
    chosen = parser.parse_args()
    report = Report()
    with (
        tempfile.TemporaryDirectory() as data,
        FunctionServer(answer) as functions,
        ServerProcess(f"sqlite:///{data}/flowserver.db") as server,
        httpx.Client(base_url=server.url, trust_env=False, timeout=300) as rest,
        running_chromium() as browser,
    ):
        Shop(rest, functions).seed()
        measures: dict[str, Callable[[], Any]] = {
            "paint": lambda: first_paint(browser, server, report, chosen.repeat),
            "list": lambda: executions_list(browser, report, chosen.repeat, chosen.executions),
            "long": lambda: long_execution(browser, server, rest, report, chosen.repeat),
            "change": lambda: change(browser, server, rest, report, chosen.repeat),
        }
        with _load(server.url, chosen.load):
            for name in chosen.only.split(","):
                measures[name]()
    print(f"\n{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}; W1 in flight beside it: {chosen.load}")


if __name__ == "__main__":
    main()
