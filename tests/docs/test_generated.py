"""The generated parts are up to date, and all error names, headers and events are explained."""

import re

import pytest
from yarl import URL

from flowserver.invokers.calls import Invocation
from flowserver.invokers.endpoint_rules import CALL_HEADERS
from flowserver.invokers.request_bytes import lasting_head, write_request
from flowserver.machine.events import EventType
from tests.docs.generate import PART, with_generated_parts
from tests.docs.pages import DOCS, pages, title_of
from tests.docs.tables import TABLES
from tests.tidy.source_files import source_files

ERROR_NAME = re.compile(r"\"((?:FnF|FC|fnf)\.[A-Za-z]+)\"")


@pytest.mark.parametrize("page", pages(), ids=title_of)
def test_the_generated_parts_are_up_to_date(page) -> None:
    text = page.read_text("utf-8")
    assert text == with_generated_parts(text), "run `make docs`"


def test_every_table_is_on_one_page() -> None:
    used = [name for page in pages() for _, name, _ in PART.findall(page.read_text("utf-8"))]
    assert sorted(used) == sorted(TABLES)


def test_every_error_name_of_the_server_is_explained() -> None:
    names = {name for source in source_files() for name in ERROR_NAME.findall(source.text)}
    text = (DOCS / "reference" / "errors.md").read_text("utf-8")
    assert {name for name in names if f"`{name}`" not in text} == set()


def test_every_header_of_a_call_is_explained() -> None:
    call = Invocation(
        service="s",
        qualifier="q",
        function="f",
        event="{}",
        invocation_id="i",
        idempotency_key="k",
        attempt=1,
        timeout_ms=1000,
        flow_name="f",
        execution_name="e",
        step_name="t",
        wants_log=True,
        traceparent="00-1-2-01",
    )
    lines = write_request(lasting_head(URL("http://127.0.0.1/"), {}), call).decode().split("\r\n")[1:-2]
    headers = {line.split(":")[0] for line in lines}
    assert {name.lower() for name in headers} >= CALL_HEADERS
    text = (DOCS / "reference" / "functions.md").read_text("utf-8")
    assert [name for name in headers if name.lower() in CALL_HEADERS and f"`{name}`" not in text] == []


def test_every_type_of_event_is_explained() -> None:
    text = (DOCS / "reference" / "api.md").read_text("utf-8")
    assert [type for type in EventType if f"`{type}`" not in text] == []
