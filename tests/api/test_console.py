"""The console's files: which requests get them, and how they are sent."""

import gzip
import re
from pathlib import Path

import httpx
import pytest

from flowserver.api.console import BASE, FOLDER, HEAD_END, PAGE, TYPES, Console
from flowserver.api.security_headers import CONSOLE_POLICY
from flowserver.server import create_app
from flowserver.settings import Settings
from tests.api.conftest import client_of

NOT_SHOWN = (PAGE, "vendor.lock", ".d.ts")
BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def base_of(page: httpx.Response) -> str:
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    return page.text.partition('<base href="')[2].partition('"')[0]


@pytest.mark.parametrize(
    "path, base",
    [
        ("/", "./"),
        ("/?since=1d", "./"),
        ("/executions?status=failed&flow=order", "./"),
        ("/queues", "./"),
        ("/flows/order", "../"),
        ("/flows/order/edit", "../../"),
        ("/executions/order/8f0c2a?event=37&step=pack%5B17%5D.label", "../../"),
        ("/executions/a%2Fb/c", "../../"),
        ("/executions/", "../"),
    ],
)
async def test_a_browser_gets_the_page_with_the_way_to_the_root(
    client: httpx.AsyncClient, path: str, base: str
) -> None:
    assert base_of(await client.get(path, headers=BROWSER)) == base
    assert base_of(await client.get(path, headers=BROWSER | {"authorization": "Basic eDp5"})) == base


async def test_a_browser_gets_a_page_also_for_an_address_that_no_api_has(client: httpx.AsyncClient) -> None:
    for path in ("/nope", "/execution/order/8f0c2a", "/Flows"):
        answer = await client.get(path, headers=BROWSER)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert (await client.get(path)).headers["content-type"] == "application/problem+json"
        assert (await client.get(path, headers=BROWSER | {"if-none-match": answer.headers["etag"]})).status_code == 404
    for path in ("/v1/nope", "/docs", "/healthz", "/metrics", "/2016-08-15/nope", "/robots.txt"):
        answer = await client.get(path, headers=BROWSER)
        assert '<base href="' not in answer.text, path


async def test_the_root_without_an_action_is_a_page_for_all_that_ask_for_html(client: httpx.AsyncClient) -> None:
    wanted = {"accept": "text/html"}
    assert base_of(await client.get("/", headers=wanted)) == "./"
    assert (await client.get("/?Action=DescribeRegions", headers=wanted)).headers["content-type"] != "text/html"


def test_the_page_has_one_base_and_one_head() -> None:
    page = (FOLDER / PAGE).read_bytes()
    assert page.count(BASE) == page.count(HEAD_END) == 1


def links_of(page: httpx.Response) -> list[str]:
    return re.findall(
        r'<link rel="(?:modulepreload|preload" as="style)" href="console/~[0-9a-f]{16}/([^"]+)">', page.text
    )


async def test_a_page_names_all_that_it_begins_with_once(client: httpx.AsyncClient) -> None:
    links = links_of(await client.get("/executions/a%2Fb/c", headers=BROWSER))
    wanted = {"pages/execution.js", "pages/execution.css", "pages/execution/run.js", "parts/graph.css", "store.js"}
    assert wanted <= set(links)
    assert len(set(links)) == len(links)
    assert all((FOLDER / name).is_file() for name in links)
    others = links_of(await client.get("/queues", headers=BROWSER))
    assert "pages/queues.js" in others
    assert "pages/execution.js" not in others
    assert not [
        name for name in links_of(await client.get("/queues/a/b", headers=BROWSER)) if name.startswith("pages/")
    ]


async def test_a_page_names_what_it_begins_with_after_an_upgrade(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / PAGE).write_bytes(BASE + HEAD_END)
    (tmp_path / "routes.js").write_text('{ pattern: "/queues", load: page("queues") },')
    (tmp_path / "pages/queues.js").write_text('import "../a.js";\nimport "../gone.js";\n/*\nimport "../never.js";\n*/')
    (tmp_path / "a.js").write_text('import "./pages/queues.js";')
    http = httpx.AsyncClient(transport=httpx.ASGITransport(Console(is_on=True, folder=tmp_path)), base_url="http://c")
    first = await http.get("/queues", headers=BROWSER)
    (tmp_path / "a.js").write_text('import "./b.js";\nstylesheet(new URL("./c.css", import.meta.url));')
    (tmp_path / "b.js").write_text("")
    (tmp_path / "c.css").write_text("")
    second = await http.get("/queues", headers=BROWSER)
    assert links_of(first) == ["pages/queues.js", "a.js"]
    assert links_of(second) == ["pages/queues.js", "a.js", "b.js", "c.css"]
    assert first.headers["etag"] != second.headers["etag"]


@pytest.mark.parametrize(
    "path, headers, status",
    [
        ("/", {}, 400),  # RPC without an action
        ("/?Action=ListFlows", BROWSER, 200),
        ("/?action=ListFlows", BROWSER, 400),
        ("/?AccessKeyId=x&Signature=y", BROWSER, 400),
        ("/?accountmeta", BROWSER, 200),
        ("/", BROWSER | {"authorization": "ACS3-HMAC-SHA256 x"}, 400),
        ("/queues", {}, 200),
        ("/queues", BROWSER | {"authorization": "MNS x:y"}, 200),
        ("/topics", BROWSER, 200),
        ("/executions", {"accept": "text/html"}, 404),
        ("/v1/flows", BROWSER, 200),
        ("/docs", BROWSER, 200),
        ("/flows/1/2/3/4/5/6/7/8", BROWSER, 404),
    ],
)
async def test_other_requests_go_to_the_other_apis(
    client: httpx.AsyncClient, path: str, headers: dict[str, str], status: int
) -> None:
    answer = await client.get(path, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers.get("content-security-policy") != CONSOLE_POLICY


async def test_only_reads_get_the_page(client: httpx.AsyncClient) -> None:
    assert (await client.head("/executions", headers=BROWSER)).status_code == 200
    assert (await client.post("/", headers=BROWSER)).json()["Code"] == "MissingRequiredParams"
    assert (await client.post("/executions", headers=BROWSER)).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/console/",
        "/console/index.html",
        "/console/nowhere.js",
        "/console/pages",
        "/console/vendor/vendor.lock",
        "/console/../settings.py",
        "/console/..%2fsettings.py",
        "/console/%2e%2e/settings.js",
        "/console//main.js",
        "/console/~/main.js",
        "/console/~0123456789abcdef/",
        f"/console/{'a' * 300}",
    ],
)
async def test_what_is_no_asset_is_not_found(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers=BROWSER)
    assert (answer.status_code, answer.json()["code"]) == (404, "NotFound")
    assert answer.headers["content-type"] == "application/problem+json"


async def test_every_file_of_the_folder_is_served_with_its_type(client: httpx.AsyncClient) -> None:
    files = [file for file in FOLDER.rglob("*") if file.is_file() and not file.name.endswith(NOT_SHOWN)]
    assert {file.suffix for file in files} <= TYPES.keys()
    for file in files:
        answer = await client.get(f"/console/{file.relative_to(FOLDER).as_posix()}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].encode() == TYPES[file.suffix]
        assert answer.content == file.read_bytes()
        assert answer.headers["content-encoding"] == "gzip"


async def test_an_asset_is_sent_again_only_if_it_has_changed(client: httpx.AsyncClient) -> None:
    plain = await client.get("/console/main.js", headers={"accept-encoding": "identity"})
    compressed = await client.get("/console/main.js", headers={"accept-encoding": "gzip, br"})
    refused = await client.get("/console/main.js", headers={"accept-encoding": "gzip;q=0, br"})
    assert "content-encoding" not in plain.headers
    assert "content-encoding" not in refused.headers
    assert int(compressed.headers["content-length"]) == len(gzip.compress(plain.content, mtime=0))
    assert plain.headers["etag"] != compressed.headers["etag"]
    assert {plain.headers["cache-control"], compressed.headers["cache-control"]} == {"no-cache"}
    assert plain.headers["vary"] == "accept-encoding"
    for answer, encoding in ((plain, "identity"), (compressed, "gzip")):
        known = {"accept-encoding": encoding, "if-none-match": f'"other", W/{answer.headers["etag"]}'}
        again = await client.get("/console/main.js", headers=known)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == answer.headers["etag"]


async def test_a_browser_keeps_the_assets_that_a_page_names(client: httpx.AsyncClient) -> None:
    page = await client.get("/flows/order", headers=BROWSER)
    named = re.findall(r'="(console/[^"]+)"', page.text)
    assert len(named) > 20
    for path in named:
        answer = await client.get(f"/{path}")
        assert answer.headers["cache-control"] == "max-age=31536000, immutable"
        assert answer.content == (FOLDER / path.split("/", 2)[2]).read_bytes()
    assert page.headers["cache-control"] == "no-cache"


async def test_what_a_page_of_another_version_names_is_kept_for_now_only(tmp_path: Path) -> None:
    """Two nodes, or a server below which an upgrade replaces files: the newer file is not kept as the older one."""
    (tmp_path / "index.html").write_text('<base href="./"><script src="console/a.js"></script></head>')
    (tmp_path / "a.js").write_text("1")
    http = httpx.AsyncClient(transport=httpx.ASGITransport(Console(is_on=True, folder=tmp_path)), base_url="http://c")

    async def named() -> str:
        (path,) = re.findall(r'"(console/~[^"]+)"', (await http.get("/", headers=BROWSER)).text)
        return str(path)

    old = await named()
    assert (await http.get(f"/{old}")).headers["cache-control"] != "no-cache"
    (tmp_path / "a.js").write_text("22")
    between = await http.get(f"/{old}")
    assert (between.text, between.headers["cache-control"]) == ("22", "no-cache")
    new = await named()
    assert new != old
    assert (await http.get(f"/{new}")).headers["cache-control"] != "no-cache"
    assert (await http.get(f"/{old}")).headers["cache-control"] == "no-cache"
    other = httpx.AsyncClient(transport=httpx.ASGITransport(Console(is_on=True, folder=tmp_path)), base_url="http://c")
    assert (await other.get(f"/{new}")).headers["cache-control"] != "no-cache"


async def test_a_file_that_was_replaced_is_served_anew(tmp_path: Path) -> None:
    """An upgrade replaces files below a running server, and a developer edits them."""
    (tmp_path / "a.js").write_text("1")
    http = httpx.AsyncClient(transport=httpx.ASGITransport(Console(is_on=True, folder=tmp_path)), base_url="http://c")
    first = await http.get("/console/a.js")
    (tmp_path / "a.js").write_text("22")
    second = await http.get("/console/a.js")
    assert (first.text, second.text) == ("1", "22")
    assert first.headers["etag"] != second.headers["etag"]


async def test_pages_and_assets_allow_nothing_from_elsewhere(client: httpx.AsyncClient) -> None:
    for path in ("/", "/console/main.js"):
        answer = await client.get(path, headers=BROWSER)
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert policy.pop("img-src") == "'self' data:"
        assert {policy.pop(name) for name in ("default-src", "form-action", "frame-ancestors")} == {"'none'"}
        assert set(policy) == {"script-src", "style-src", "connect-src", "base-uri"}
        assert set(policy.values()) == {"'self'"}
        assert answer.headers["x-request-id"]


async def test_the_console_can_be_switched_off(sqlite_url: str) -> None:
    app = create_app(Settings(database_url=sqlite_url, drain_seconds=0, console=False))
    async with app.router.lifespan_context(app), client_of(app) as http:
        assert (await http.get("/", headers=BROWSER)).json()["Code"] == "MissingRequiredParams"
        assert (await http.get("/queues", headers=BROWSER)).headers["content-type"].startswith("text/xml")
        assert (await http.get("/console/main.js")).status_code == 404
