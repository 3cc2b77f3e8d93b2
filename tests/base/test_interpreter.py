"""Which Python an installation takes."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from flowserver.base import interpreter

ROOT = Path(__file__).resolve().parents[2]


def test_the_makefile_can_ask_an_interpreter_that_has_no_packages() -> None:
    command = [sys.executable, "-I", "-S", ROOT / "flowserver/base/interpreter.py"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout

    assert printed == ("3\n" if interpreter.is_optimised() else "2\n")


@pytest.mark.parametrize(
    ("flags", "schemes", "expected"),
    [
        ({"CONFIG_ARGS": "'--enable-shared' '--enable-optimizations' '--with-lto'"}, ("posix_prefix",), True),
        ({"CONFIG_ARGS": "'--enable-shared'", "PY_CORE_CFLAGS": "-O3 -fprofile-use"}, ("posix_prefix",), True),
        ({"CONFIG_ARGS": "'--enable-shared'", "PY_CORE_CFLAGS": "-O3"}, ("posix_prefix",), False),
        ({"CONFIG_ARGS": "'--enable-shared'"}, ("deb_system", "posix_prefix"), True),
        ({}, ("nt",), True),
    ],
    ids=["configured", "flags", "plain", "Debian", "Windows"],
)
def test_build_flags_tell_an_optimised_build(
    monkeypatch: pytest.MonkeyPatch, flags: dict[str, str], schemes: tuple[str, ...], expected: bool
) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", flags.get)
    monkeypatch.setattr(sysconfig, "get_scheme_names", lambda: schemes)

    assert interpreter.is_optimised() is expected
