"""The project as users get it: a bare checkout with `make run`, and a wheel installed alone.

The packages of requirements.txt are copied, not installed anew: `make test` in a fresh clone has installed them so.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import httpx
import pytest

from tests.support.server import clean_environment

ROOT = Path(__file__).resolve().parents[2]
LEFT_BEHIND = shutil.ignore_patterns(".venv", ".git", "data", "node_modules", "*_cache", "__pycache__", ".hypothesis")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bare_checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's files without build results, but with an environment that has the packages of requirements.txt."""
    folder = Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("bare") / "checkout", ignore=LEFT_BEHIND))
    make_environment(folder / ".venv")
    (libraries,) = (folder / ".venv").glob("lib/python3*/site-packages")
    for name in ["pip", *re.findall(r"(?m)^([\w.-]+)==", (folder / "requirements.txt").read_text())]:
        copy_package(name, libraries)
    (folder / ".venv" / ".runtime").touch()  # says to make that they are installed
    return folder


def make_environment(folder: Path) -> None:
    """An environment without packages."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True, env=bare_environment())


def copy_package(name: str, libraries: Path) -> None:
    """Copy an installed package, if this platform has it; its programs are left out."""
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return
    for file in package.files or ():
        if ".." not in file.parts:
            target = libraries / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(package.locate_file(file), target)


def bare_environment() -> dict[str, str]:
    """This process's variables, without those that lead to another environment or to the sources."""
    environment = clean_environment() | {"PYTHON": sys.executable}
    return {name: value for name, value in environment.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}


@contextmanager
def serving(command: list[str], folder: Path) -> Iterator[str]:
    """Run a command that serves, and yield its URL; at the end it must shut down cleanly."""
    environment = bare_environment() | {"FLOWSERVER_PORT": "0", "XDG_DATA_HOME": str(folder / "home")}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            printed.append(line)
            if line.strip().startswith("API "):
                yield line.split()[1]
                os.killpg(process.pid, signal.SIGTERM)
    assert any("API " in line for line in printed), "".join(printed)
    assert not any("Traceback" in line for line in printed), "".join(printed)


def runs_a_flow(url: str) -> bool:
    """Whether the server there accepts a flow and runs it."""
    definition = "version: v1\ntype: flow\nsteps: [{type: pass, name: p, outputMappings: [{target: k, source: 1}]}]\n"
    with httpx.Client(base_url=url, trust_env=False) as http:
        http.post("/v1/flows", json={"name": "f", "definition": definition}).raise_for_status()
        started = http.post("/v1/flows/f/executions?wait=10", json={"name": "e"}).json()
    return bool(started["status"] == "Succeeded" and started["output"] == {"k": 1})


def shows_the_console(url: str) -> bool:
    """Whether a browser gets the console's page from the server there, and the modules that the page names."""
    with httpx.Client(base_url=url, trust_env=False) as http:
        page = http.get("/", headers={"accept": "text/html,application/xhtml+xml"}).raise_for_status()
        modules = re.findall(r'="(console/[^"]+)"', page.text)
        return bool(modules) and all(http.get(f"/{module}").is_success for module in modules)


def test_make_run_serves_from_a_bare_checkout(bare_checkout: Path) -> None:
    with serving(["make", "run"], bare_checkout) as url:
        assert runs_a_flow(url)
    assert (bare_checkout / "data" / "flowserver.db").exists()


def test_the_wheel_alone_serves(bare_checkout: Path, tmp_path: Path) -> None:
    """In a new environment that sees the packages of `make install` from the lock file, and no sources of the project.
    The data is in the user's folder.
    """
    run = {"check": True, "cwd": bare_checkout, "env": bare_environment()}
    subprocess.run(["make", "install"], **run)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")], **run)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    make_environment(tmp_path / "clean")
    (libraries,) = (bare_checkout / ".venv").glob("lib/python3*/site-packages")
    (own,) = (tmp_path / "clean").glob("lib/python3*/site-packages")
    (own / "libraries.pth").write_text(
        f"{libraries}\n"
    )  # links in that folder, such as the one to the sources, are not followed
    install = [sys.executable, "-m", "pip", "--python", str(tmp_path / "clean"), "install", "--quiet"]
    subprocess.run([*install, "--ignore-installed", "--no-deps", "--no-index", str(wheel)], **run)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    flowserver = str(tmp_path / "clean" / "bin" / "flowserver")
    with serving([flowserver, "serve"], elsewhere) as url:
        assert runs_a_flow(url)
        assert shows_the_console(url)
    assert [each.name for each in elsewhere.iterdir()] == ["home"]
    assert (elsewhere / "home" / "flowserver" / "flowserver.db").stat().st_mode & 0o777 == 0o600
    where = [str(tmp_path / "clean" / "bin" / "python"), "-c", "import flowserver; print(flowserver.__file__)"]
    printed = subprocess.run(where, check=True, cwd=elsewhere, env=bare_environment(), capture_output=True, text=True)
    assert Path(printed.stdout.strip()).is_relative_to(own)
