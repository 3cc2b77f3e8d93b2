"""The stand-in for curl supports the tested commands, so that they mean the same on every machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import curl
from tests.support.function_server import FunctionServer
from tests.support.ports import free_port


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, curl.__file__, *arguments], capture_output=True, text=True, timeout=30, check=False
    )


def test_it_posts_and_prints_the_reply() -> None:
    with FunctionServer() as functions:
        done = run("-s", "--json", '{"a": 1}', "-H", "X-Extra: b", f"{functions.url}/s/f")

    assert (done.returncode, done.stdout) == (0, '{"a": 1}')
    assert functions.calls[0].headers["x-extra"] == "b"
    assert functions.calls[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize(("flags", "code"), [([], 0), (["--fail-with-body"], 22)])
def test_it_fails_on_error_statuses_on_request(flags: list[str], code: int) -> None:
    with FunctionServer() as functions:
        assert run(*flags, functions.url).returncode == code  # it supports no GET


def test_it_saves_the_body_and_the_headers_and_reads_standard_input(tmp_path: Path) -> None:
    body, headers = tmp_path / "body", tmp_path / "headers"
    with FunctionServer() as functions:
        command = ["-s", "-o", str(body), "-D", str(headers), "--data-binary", "@-", f"{functions.url}/s/f"]
        done = subprocess.run([sys.executable, curl.__file__, *command], input=b'{"a": 1}', timeout=30, check=False)

    assert (done.returncode, body.read_bytes()) == (0, b'{"a": 1}')
    assert headers.read_text().startswith("HTTP/1.1 200\n")


def test_it_tries_again_until_a_server_answers() -> None:
    port = free_port()
    done = run("--retry", "2", "--retry-delay", "0", "--retry-connrefused", f"http://127.0.0.1:{port}")

    assert done.returncode == 7
    assert done.stderr.count("(7)") == 3
