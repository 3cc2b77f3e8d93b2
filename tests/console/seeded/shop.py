"""A server as a shop would have filled it: what every page of the console shows, for pictures and for stories.

`seed` fills a server; `PAGES` names one URL of each page, with something to see.
"""

from pathlib import Path
from typing import Any, Final

import httpx

from tests.support.function_server import Call, FunctionError, FunctionServer

EXAMPLES: Final = Path(__file__).parents[3] / "examples"
ORDER: Final = (Path(__file__).parent / "order.yaml").read_text("utf-8")
HOSTILE_TEXT: Final = "<script>document.title='owned'</script><img src=x onerror=alert(1)> ${7*7} {{7*7}}"
RIGHT_TO_LEFT: Final = "مرحبا \u202eevil\u202c שלום"
EMOJI: Final = "🚀👩‍👩‍👧‍👦🏳️‍🌈 e\u0301\u0323 ﷽"
LARGE_CHARACTERS: Final = 120_000
"""Of each of 42 values: a step holds at most 256 KiB, and all of them together are 5 MB."""
FUNCTIONS: Final = (
    *(f"shop/{name}" for name in ("reserve", "charge", "order-more", "label", "book", "notify")),
    *("fnf-demo/StartJob", "fnf-demo/GetJobStatus", "trips/book", "trips/cancel", "shop/large"),
)

PAGES: Final = {
    "overview": "/",
    "executions": "/executions",
    "executions-failed": "/executions?status=failed&flow=order",
    "executions-none": "/executions?status=timedout",
    "execution-succeeded": "/executions/order/o-8f0c2a",
    "execution-failed": "/executions/order/o-9a4d17",
    "execution-waiting": "/executions/order/waits-for-stock",
    "execution-500": "/executions/order/items-500",
    "execution-step": "/executions/order/o-9a4d17?step=pack%5B17%5D.label",
    "execution-hostile": "/executions/hostile/e",
    "execution-large": "/executions/large/e?step=all%5B0%5D.make",
    "flows": "/flows",
    "flow": "/flows/order",
    "editor": "/flows/order/edit",
    "editor-new": "/flows/-/new",
    "compare": "/compare?left=order/o-8f0c2a&right=order/o-9a4d17",
    "waiting": "/waiting",
    "schedules": "/schedules",
    "functions": "/functions",
    "queues": "/queues",
    "server": "/server",
    "sign-in": "/sign-in#flc_unknown",
    "audit": "/audit?object=flows",
}

HOSTILE: Final = """\
version: v1
type: flow
steps:
  - {type: pass, name: p, outputMappings: [{target: all, source: $input}]}
  - {type: fail, name: f, error: "<b>Broken</b>", cause: "<img src=x onerror=alert(2)>"}
"""


LARGE: Final = """\
version: v1
type: flow
steps:
  - type: foreach
    name: all
    iterationMapping: {collection: $.items, item: item}
    steps:
      - type: task
        name: make
        resourceArn: acs:fc:::services/shop/functions/large
        outputMappings: [{target: made, source: true}]
"""


def answer(call: Call) -> Any:
    """What the shop's functions return."""
    event: dict[str, Any] = call.event if isinstance(call.event, dict) else {}
    match call.function:
        case "shop/reserve":
            return {"inStock": event.get("inStock", True), "shelf": "B7"}
        case "shop/charge" if event.get("card") == "refused":
            return FunctionError("CardRefused", "insufficient funds")
        case "shop/label" if event.get("item") == "broken lamp":
            return FunctionError("PrinterOffline", "printer offline: label-printer-2.warehouse.example did not answer")
        case "shop/label":
            return {"label": f"label of {event.get('item')}"}
        case "fnf-demo/StartJob":
            return {"job_id": "job-4711"}
        case "fnf-demo/GetJobStatus":
            return {"job_status": "success"}
        case "trips/book" if event.get("soldOut") == event.get("thing"):
            return FunctionError("SoldOut", f"no {event.get('thing')} is left")
        case "trips/book":
            return {"booking": f"{event.get('thing')}-1"}
        case "shop/large":
            return {"text": HOSTILE_TEXT + "0123456789" * (LARGE_CHARACTERS // 10)}
    return {}


class Shop:
    """Fills one server."""

    def __init__(self, rest: httpx.Client, functions: FunctionServer | None) -> None:
        self._rest = rest
        self._functions = functions

    def seed(self) -> None:
        """Create all that `PAGES` shows; executions that end have ended then."""
        self.seed_shop()
        self.seed_attacks()

    def seed_attacks(self) -> None:
        """Create texts that attack the console."""
        self.flow("hostile", HOSTILE, HOSTILE_TEXT)
        self.start("hostile", "e", {HOSTILE_TEXT: RIGHT_TO_LEFT, "emoji": EMOJI, "script": HOSTILE_TEXT})

    def seed_shop(self) -> None:
        """Create what a user may see in a picture: nothing of it attacks the console."""
        assert self._functions is not None
        self._functions.register(str(self._rest.base_url), *FUNCTIONS)
        for name, path in (("polling", "polling"), ("book-trip", "saga"), ("approve-expense", "approval")):
            self.flow(name, (EXAMPLES / path / "flow.yaml").read_text("utf-8"))
        for name in ("approvals", "labels"):
            self._rest.put(f"/queues/{name}", content="<Queue/>").raise_for_status()
        self._rest.put("/topics/parcels", content="<Topic/>").raise_for_status()
        for number in range(3):
            body = {"body": f'{{"parcel": {number}, "note": "{RIGHT_TO_LEFT}"}}'}
            self._rest.post("/v1/queues/labels/messages", json=body).raise_for_status()
        self._seed_orders()
        self.flow("large", LARGE)
        self.start("large", "e", {"items": list(range(42))})
        self.start("book-trip", "rome", {"soldOut": "car"})
        self.start("book-trip", "oslo", {})
        self.start("approve-expense", "taxi", {"what": "Taxi to the airport", "amount": 42}, wait=0)
        self.start("polling", "nightly-import", {"delay": 1}, wait=0)

    def _seed_orders(self) -> None:
        self.flow("order", ORDER, "Takes an order from the shop.")
        self._rest.post("/v1/flows/order/versions", json={"description": "first"}).raise_for_status()
        second = ORDER.replace("maxAttempts: 3", "maxAttempts: 5")
        self.flow("order", second, "Takes an order from the shop.")
        self._rest.post("/v1/flows/order/versions", json={"description": "asks the bank more often"}).raise_for_status()
        routes = [{"version": 1, "weight": 90}, {"version": 2, "weight": 10}]
        self._rest.post("/v1/flows/order/aliases", json={"name": "prod", "routes": routes}).raise_for_status()
        schedule = {"name": "nightly", "cronExpression": "0 30 2 * * ?", "timeZone": "Europe/Berlin", "payload": {}}
        self._rest.post("/v1/flows/order/schedules", json=schedule).raise_for_status()
        items = [f"lamp {number}" for number in range(24)]
        self.start("order", "o-8f0c2a", {"items": items})
        self.start("order", "o-9a4d17", {"items": [*items[:17], "broken lamp", *items[18:]]})
        self.start("order", "refused", {"items": items, "card": "refused"})
        self.start("order", "items-500", {"items": [f"lamp {number}" for number in range(500)]})
        self.start("order", "waits-for-stock", {"items": items, "inStock": False}, wait=0)
        self.start("order", "stopped", {"items": items, "inStock": False}, wait=0)
        self._rest.post("/v1/flows/order/executions/stopped/stop", json={"cause": "test"}).raise_for_status()

    def flow(self, name: str, definition: str, description: str = "") -> None:
        """Create or replace a flow."""
        body = {"definition": definition, "description": description}
        self._rest.put(f"/v1/flows/{name}", json=body).raise_for_status()

    def start(self, flow: str, name: str, input: dict[str, Any], wait: int = 60) -> None:
        """Start an execution, and wait for its end for so many seconds."""
        body = {"name": name, "input": input}
        self._rest.post(f"/v1/flows/{flow}/executions?wait={wait}", json=body).raise_for_status()
