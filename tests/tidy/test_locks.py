"""The lock files name packages and hashes, no index addresses, and agree with pyproject.toml."""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.source_files import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
RUNTIME = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]]
TESTING = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["test"]]
WANTED = {
    "requirements.txt": RUNTIME,
    "requirements-test.txt": TESTING,
    "requirements-sdk-v3.txt": PROJECT["dependency-groups"]["sdk-v3"],
    "requirements-openapi-client.txt": PROJECT["dependency-groups"]["openapi-client"],
}
NODE_LOCKS = (
    "tests/sdk/node/package-lock.json",
    "tests/console/package-lock.json",
    "tests/openapi/package-lock.json",
    "tests/editing/yaml_language_server/package-lock.json",
    "tests/benchmarks/peers/package-lock.json",
)

USED_BEYOND_THEIR_DOCUMENTATION = ("aiohttp", "typer", "uvicorn")

PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ]+)(?P<hashes>(?:.*\\\n {4}--hash=sha256:[0-9a-f]{64})+)", re.M
)


def _pins(lock: str) -> Iterator[tuple[str, str]]:
    for match in PIN.finditer((ROOT / lock).read_text("utf-8")):
        yield canonicalize_name(match["name"]), match["version"]


@pytest.mark.parametrize("lock", [*WANTED, *NODE_LOCKS])
def test_locks_hold_no_addresses(lock: str) -> None:
    assert "://" not in (ROOT / lock).read_text("utf-8")


@pytest.mark.parametrize("lock", WANTED)
def test_every_line_is_pinned_and_hashed(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    starts = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(starts) == len(list(_pins(lock)))


@pytest.mark.parametrize(("lock", "wanted"), WANTED.items())
def test_locks_satisfy_the_project(lock: str, wanted: list[str]) -> None:
    pins = dict(_pins(lock))
    missing = [
        text
        for text in wanted
        for requirement in [Requirement(text)]
        if not requirement.specifier.contains(pins.get(canonicalize_name(requirement.name), "0.dev0"))
    ]
    assert missing == [], "run `make lock`"


@pytest.mark.parametrize("name", USED_BEYOND_THEIR_DOCUMENTATION)
def test_private_api_is_used_of_known_minor_versions_only(name: str) -> None:
    """A user without a lock file gets no version that was not tried."""
    (wanted,) = (each for each in map(Requirement, PROJECT["project"]["dependencies"]) if each.name == name)
    major, minor, *_ = dict(_pins("requirements.txt"))[name].split(".")
    assert not wanted.specifier.contains(f"{major}.{int(minor) + 1}.0")


def test_tests_run_with_the_versions_of_users() -> None:
    users, tests = dict(_pins("requirements.txt")), dict(_pins("requirements-test.txt"))
    assert {name: version for name, version in users.items() if tests.get(name, version) != version} == {}


@pytest.mark.parametrize("lock", NODE_LOCKS)
def test_node_packages_are_hashed(lock: str) -> None:
    packages = json.loads((ROOT / lock).read_text("utf-8"))["packages"]
    assert [name for name, entry in packages.items() if name and "integrity" not in entry] == []
