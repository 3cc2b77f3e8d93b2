"""A stand-in for curl on machines without it, so that the commands of the README, the pages and the examples run there
too. It supports the few options that they use. Where curl is installed, curl itself runs.
"""

import argparse
import os
import sys
from pathlib import Path
from urllib.parse import quote_plus

import httpx

FAILED_BY_STATUS = 22
"""curl's exit code for an HTTP status of 400 or more with `--fail`."""


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    """The options of curl that are used here."""
    parser = argparse.ArgumentParser(prog="curl", allow_abbrev=False)
    parser.add_argument("url")
    parser.add_argument("-X", "--request")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("-d", "--data", action="append", default=[])
    parser.add_argument("--data-binary", action="append", default=[])
    parser.add_argument("--data-urlencode", action="append", default=[])
    parser.add_argument("--json")
    parser.add_argument("--fail-with-body", action="store_true")
    for flag in (("-s", "--silent"), ("-S", "--show-error"), ("-N", "--no-buffer")):
        parser.add_argument(*flag, action="store_true")
    return parser.parse_args(arguments)


def body_of(given: argparse.Namespace) -> bytes | None:
    """The request's body; None if it has none."""
    parts = [_content(text) for text in (*given.data, *given.data_binary)]
    for text in given.data_urlencode:
        name, _, value = text.partition("=")
        parts.append(f"{name}={quote_plus(value)}".encode())
    if given.json is not None:
        return _content(given.json)
    return b"&".join(parts) if parts else None


def _content(text: str) -> bytes:
    return Path(text[1:]).read_bytes() if text.startswith("@") else text.encode()


def headers_of(given: argparse.Namespace, has_body: bool) -> dict[str, str]:
    """The request's headers, with curl's defaults."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"} if has_body else {}
    if given.json is not None:
        headers |= {"Content-Type": "application/json", "Accept": "application/json"}
    return headers | {name.strip(): value.strip() for name, _, value in (text.partition(":") for text in given.header)}


def main(arguments: list[str]) -> int:
    """Make one request and print the reply's body as it arrives."""
    given = read_arguments(arguments)
    settings = Path(os.environ.get("CURL_HOME", "/nonexistent")) / ".curlrc"
    minds_status = given.fail_with_body or (settings.exists() and "fail-with-body" in settings.read_text())
    body = body_of(given)
    method = given.request or ("GET" if body is None else "POST")
    headers = headers_of(given, body is not None)
    with (
        httpx.Client(trust_env=False, timeout=None) as client,
        client.stream(method, given.url, content=body, headers=headers) as reply,
    ):
        for piece in reply.iter_bytes():
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
    return FAILED_BY_STATUS if minds_status and reply.status_code >= 400 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
