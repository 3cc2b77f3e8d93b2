"""The stand-in for curl supports the tested commands, so that they mean the same on every machine."""

import subprocess
import sys

import pytest

from tests.support import curl
from tests.support.function_server import FunctionServer


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
