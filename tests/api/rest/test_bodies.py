"""Request bodies must be exact JSON in UTF-8 of a known media type; all others are refused."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.api.rest.conftest import PASS, assert_problem

JSON = {"Content-Type": "application/json"}
HERE = "/v1/flows/order/executions"

ECHO = """\
version: v1
type: flow
steps:
  - type: pass
    name: p
    outputMappings:
      - {target: copy, source: $input.doc}
"""


@pytest.fixture(autouse=True)
async def flow(client: httpx.AsyncClient) -> None:
    await client.put("/v1/flows/order", json={"definition": ECHO})


async def test_the_deepest_document_is_returned(client: httpx.AsyncClient) -> None:
    body = '{"name":"run","input":' + '{"":' * 198 + "{}" + "}" * 199
    response = await client.post(f"{HERE}?wait=60", content=body, headers=JSON)
    assert (response.status_code, response.json()["status"]) == (201, "Succeeded")
    history = await client.get(f"{HERE}/run/events")
    assert '"input":' + '{"":' * 198 in history.text


@pytest.mark.parametrize(
    "document",
    [
        "9007199254740993",
        "-" + "7" * 60,
        "1" * 4000,
        "1.5",
        "1e-9",
        "true",
        '"~*+/&=%中😀"',
        r'"\u0000\u2028"',
        '{"":{"b":[],"a":[{}]}}',
        "[" * 150 + "]" * 150,
    ],
)
async def test_documents_are_returned_exactly(client: httpx.AsyncClient, document: str) -> None:
    body = f'{{"name":"run","input":{{"doc":{document}}}}}'.encode()
    await client.post(f"{HERE}?wait=60", content=body, headers=JSON)
    shown = (await client.get(f"{HERE}/run")).content.decode()
    expected = document.replace(r"\u2028", "\u2028")
    assert f'"input":{{"doc":{expected}}}' in shown
    assert f'"output":{{"copy":{expected}}}' in shown
    assert expected in (await client.get(f"{HERE}/run/events")).content.decode()


async def test_a_byte_order_mark_is_skipped(client: httpx.AsyncClient) -> None:
    answer = await client.post(HERE, content=b'\xef\xbb\xbf{"name": "marked"}', headers=JSON)
    assert (answer.status_code, answer.json()["name"]) == (201, "marked")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "line 1 column"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'{"input":{"n":NaN}}', "NaN"),
        (b'{"input":{"n":-Infinity}}', "Infinity"),
        (b'{"input":{"n":1e400}}', "out of range"),
        (b'{"input":{"n":' + b"1" * 5000 + b"}}", "digits"),
        (rb'{"input":{"s":"\ud800"}}', "surrogate"),
        (b'{"input":{"s":"\xff"}}', "not UTF-8"),
        ("{}".encode("utf-16"), "encoded as UTF-16"),
        ("{}".encode("utf-16-be"), "encoded as UTF-16"),
        ("{}".encode("utf-32"), "encoded as UTF-32"),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", "line 1 column 1"),
        (b'{"input":' + b"[" * 10_000, "deeper"),
        (b'{"input":' + b'{"a":' * 201 + b"1" + b"}" * 202, "deeper"),
        (b"\0", "line 1"),
        (b'{"name":"a"} {}', "Extra data"),
    ],
)
async def test_invalid_json_is_refused(client: httpx.AsyncClient, body: bytes, words: str) -> None:
    problem = assert_problem(await client.post(HERE, content=body, headers=JSON), 400, "InvalidArgument")
    assert words in problem["detail"]
    assert (await client.get(HERE)).json()["executions"] == []


@pytest.mark.parametrize(
    "media_type",
    [
        "application/x-www-form-urlencoded",
        "application/yaml",
        "text/json",
        "application/json; charset=utf-16",
        "application/jsonp",
        "json",
        "/",
        ";",
        "application/json, text/plain",
        "multipart/form-data; boundary=x",
        "application/json; charset*=x'y'z",
    ],
)
async def test_other_media_types_are_refused(client: httpx.AsyncClient, media_type: str) -> None:
    response = await client.post(HERE, content=b'{"name":"run"}', headers={"Content-Type": media_type})
    problem = assert_problem(response, 415, "UnsupportedMediaType")
    assert "application/json" in problem["detail"] or "UTF-8" in problem["detail"]


async def test_a_body_without_a_media_type_is_refused(client: httpx.AsyncClient) -> None:
    for path in (HERE, "/v1/flows?name=x", "/v1/definitions/validate"):
        assert_problem(await client.post(path, content=PASS.encode()), 415, "UnsupportedMediaType")


async def test_a_definition_has_further_media_types(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/flows?name=x", content=PASS.encode(), headers={"Content-Type": "text/html"})
    detail = assert_problem(response, 415, "UnsupportedMediaType")["detail"]
    for media_type in ("application/json", "application/yaml", "text/yaml", "application/x-yaml", "text/plain"):
        assert detail.count(f"`{media_type}`") == 1
    for media_type in ("application/x-www-form-urlencoded", "text/html", "text/yaml; charset=gbk"):
        response = await client.post("/v1/flows?name=x", content=PASS.encode(), headers={"Content-Type": media_type})
        assert_problem(response, 415, "UnsupportedMediaType")


async def test_a_definition_that_is_not_utf_8_is_refused(client: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "text/yaml"}
    response = await client.post("/v1/flows?name=x", content=b"version: \xe4", headers=headers)
    assert "byte 10" in assert_problem(response, 400, "InvalidArgument")["detail"]


async def test_a_huge_definition_is_refused(client: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "text/yaml"}
    response = await client.post("/v1/flows?name=x", content=PASS + "#" * 262_144, headers=headers)
    [found] = assert_problem(response, 400, "InvalidArgument")["diagnostics"]
    assert found["id"] == "definition-too-large"


@pytest.mark.parametrize("path", ["/v1/flows", HERE, "/v1/tasks/succeed", "/v1/definitions/validate"])
async def test_the_size_of_a_body_is_limited(client: httpx.AsyncClient, path: str) -> None:
    assert_problem(await client.post(path, content=b"x" * 1_048_577, headers=JSON), 400, "EntityTooLarge")


async def test_a_body_that_is_too_large_is_not_requested(client: httpx.AsyncClient) -> None:
    async def body() -> AsyncIterator[bytes]:
        raise AssertionError("it was asked for")
        yield b""

    asking = {**JSON, "Expect": "100-continue", "Content-Length": "1048577"}
    assert_problem(await client.post("/v1/flows", content=body(), headers=asking), 400, "EntityTooLarge")
    fits = {**JSON, "Expect": "100-continue"}
    assert_problem(await client.post("/v1/flows", content=b"{}", headers=fits), 400, "MissingRequiredParams")


async def test_fields_are_taken_literally(client: httpx.AsyncClient) -> None:
    for seconds in ('"30"', "30.0", "true", "0", "86401"):
        body = f'{{"url":"http://127.0.0.1/f","timeoutSeconds":{seconds}}}'
        response = await client.put("/v1/functions/s/f", content=body, headers=JSON)
        assert "`timeoutSeconds`" in assert_problem(response, 400, "InvalidArgument")["detail"]
    response = await client.put("/v1/functions/s/f", json={"url": "http://127.0.0.1/f", "timeout_seconds": 30})
    assert "`timeout_seconds` is not known" in assert_problem(response, 400, "InvalidArgument")["detail"]


async def test_a_message_lists_a_few_findings_and_repeats_little(client: httpx.AsyncClient) -> None:
    body = {f"{number}{'x' * 1000}": 1 for number in range(500)}
    problem = assert_problem(await client.post(HERE, json=body), 400, "InvalidArgument")
    assert len(problem["detail"]) < 1000
