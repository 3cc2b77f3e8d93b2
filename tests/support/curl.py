"""A stand-in for curl on machines without it, so that the commands of the README, the pages and the examples run there
too. It supports the few options that they use. Where curl is installed, curl itself runs.
"""

import argparse
import os
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote_plus

import httpx

FAILED_BY_STATUS = 22
"""curl's exit code for an HTTP status of 400 or more with `--fail`."""

NOT_CONNECTED = 7
"""curl's exit code if the server takes no connection."""


def read_arguments(arguments: list[str]) -> argparse.Namespace:
    """The options of curl that are used here."""
    parser = argparse.ArgumentParser(prog="curl", allow_abbrev=False)
    parser.add_argument("url")
    parser.add_argument("-X", "--request")
    parser.add_argument("-H", "--header", action="append", default=[])
    parser.add_argument("-d", "--data", action="append", default=[])
    parser.add_argument("--data-binary", action="append", default=[])
    parser.add_argument("--data-urlencode", action="append", default=[])
    for option in (("--json",), ("--cacert",), ("-o", "--output"), ("-D", "--dump-header")):
        parser.add_argument(*option)
    for option in ("--retry", "--retry-delay"):
        parser.add_argument(option, type=int, default=0)
    for flag in (("-s", "--silent"), ("-S", "--show-error"), ("-N", "--no-buffer"), ("-f", "--fail")):
        parser.add_argument(*flag, action="store_true")
    for name in ("--fail-with-body", "--retry-connrefused", "--retry-all-errors"):
        parser.add_argument(name, action="store_true")
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
    if text == "@-":
        return sys.stdin.buffer.read()
    return Path(text[1:]).read_bytes() if text.startswith("@") else text.encode()


def headers_of(given: argparse.Namespace, has_body: bool) -> dict[str, str]:
    """The request's headers, with curl's defaults."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"} if has_body else {}
    if given.json is not None:
        headers |= {"Content-Type": "application/json", "Accept": "application/json"}
    return headers | {name.strip(): value.strip() for name, _, value in (text.partition(":") for text in given.header)}


def main(arguments: list[str]) -> int:
    """Make one request, again if `--retry` says so, and write the reply's body as it arrives."""
    given = read_arguments(arguments)
    settings = Path(os.environ.get("CURL_HOME", "/nonexistent")) / ".curlrc"
    given.fail_with_body |= settings.exists() and "fail-with-body" in settings.read_text()
    body = body_of(given)
    for tries_left in range(given.retry, -1, -1):
        code = send(given, body)
        if not code or not tries_left:
            break
        time.sleep(given.retry_delay)
    return code


def send(given: argparse.Namespace, body: bytes | None) -> int:
    """Make the request once; returns curl's exit code."""
    verify = ssl.create_default_context(cafile=given.cacert)
    method = given.request or ("GET" if body is None else "POST")
    try:
        with (
            httpx.Client(trust_env=False, timeout=None, verify=verify) as client,
            client.stream(method, given.url, content=body, headers=headers_of(given, body is not None)) as reply,
        ):
            has_failed = reply.status_code >= 400 and (given.fail or given.fail_with_body)
            if given.dump_header is not None:
                lines = [
                    f"HTTP/1.1 {reply.status_code}",
                    *(f"{name}: {value}" for name, value in reply.headers.items()),
                ]
                with opened(given.dump_header) as file:
                    file.write("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
            if not (has_failed and given.fail):
                with opened(given.output or "-") as file:
                    for piece in reply.iter_bytes():
                        file.write(piece)
                        file.flush()
    except httpx.ConnectError as error:
        print(f"curl: (7) {error}", file=sys.stderr)
        return NOT_CONNECTED
    return FAILED_BY_STATUS if has_failed else 0


@contextmanager
def opened(place: str) -> Iterator[BinaryIO]:
    """The file to write to; `-` is standard output."""
    if place == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with Path(place).open("wb") as file:
            yield file


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
