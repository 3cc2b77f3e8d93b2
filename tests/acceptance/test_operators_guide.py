"""The operator's guide, as one session in a shell: a wheel in an empty environment, a real Caddy, a collector.

The parts with Prometheus run where it is installed (the Debian package `prometheus`); elsewhere `test_monitoring` alone
judges the alerts.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.test_packaging import bare_environment, make_environment
from tests.docs.pages import ROOT, blocks
from tests.support.collector import Collector
from tests.support.ports import free_port
from tests.support.stand_ins import path_with_stand_ins

PAGE = ROOT / "docs" / "how-to" / "operate.md"
MONITORING = ROOT / "examples" / "monitoring"
COLLECTOR_PORT = "4318"
PORTS = ("8080", "8081", "8443", "9000", "9090")
HAS_PROMETHEUS = shutil.which("prometheus") is not None
SECONDS = 240
"""The time limit of the whole session; only a session that hangs reaches it."""

pytestmark = pytest.mark.slow


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


@pytest.fixture
def session(tmp_path: Path, collector: Collector) -> str:
    """The commands of the page in order, its files where it wants them, and a wheel to install."""
    ports = {port: str(free_port()) for port in PORTS} | {COLLECTOR_PORT: collector.url.rpartition(":")[2]}

    def adapted(text: str) -> str:
        return re.sub("|".join(rf"\b{port}\b" for port in ports), lambda found: ports[found[0]], text)

    script = ["set -euo pipefail"]
    for block in blocks(PAGE):
        if name := block.mark("file"):
            (tmp_path / name).write_text(adapted(block.text))
        elif block.language == "bash" and (HAS_PROMETHEUS or block.mark("needs") != "prometheus"):
            script.append(adapted(block.text))
    for name in ("prometheus.yaml", "alerts.yaml"):
        (tmp_path / name).write_text(adapted((MONITORING / name).read_text()).replace("15s", "1s"))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT, env=bare_environment(), capture_output=True)
    return "\n".join(script)


def test_the_guide_works_from_the_first_line_to_the_last(session: str, collector: Collector, tmp_path: Path) -> None:
    """Its environment sees the libraries of this one, because package registries are not for tests; not the project."""
    make_environment(tmp_path / "env")
    _stand_in_for_pip(tmp_path)
    environment = bare_environment() | {
        "HOME": str(tmp_path),
        "PATH": path_with_stand_ins(f"{tmp_path}/tools:/usr/bin:/bin"),
        "XDG_CONFIG_HOME": str(tmp_path / "configuration"),
    }
    environment.pop("XDG_DATA_HOME", None)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "caddy").symlink_to(Path(sys.executable).parent / "caddy")
    (tmp_path / "tools" / "python3").symlink_to(tmp_path / "env" / "bin" / "python3")
    with (
        (tmp_path / "printed").open("wb") as output,
        subprocess.Popen(
            ["bash", "-c", session.replace("python3 -m venv env\n", "")],
            cwd=tmp_path,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as shell,
    ):
        try:
            status = shell.wait(SECONDS)
        finally:
            os.killpg(shell.pid, signal.SIGTERM)  # what it has started in the background, too
    printed = (tmp_path / "printed").read_text() + (tmp_path / "server.log").read_text()
    assert status == 0, printed
    assert '{"amount": 5, "charged": 5}' in printed or '"charged": 5' in printed, printed
    assert "exit code 1" in printed
    assert "FC.ServerError" in printed or "FunctionNotStarted" in printed
    assert printed.count("order/first") >= 2, printed  # on the server, and restored elsewhere
    assert ('"alertname":"FailedExecutions"' in printed) is HAS_PROMETHEUS, printed
    start, charge, end = (collector.wait_for(name) for name in ("start order", "charge", "end order"))
    assert charge.trace_id == end.trace_id == start.trace_id
    for secret in (tmp_path / "secrets.key", *tmp_path.glob("*.token")):
        assert secret.read_text().strip() not in printed
        assert secret.read_bytes().strip() not in (tmp_path / "backup.db").read_bytes()


def _stand_in_for_pip(folder: Path) -> None:
    """`env/bin/pip` without an index: it installs the wheel alone, and the libraries are those of this environment."""
    (own,) = (folder / "env").glob("lib/python3*/site-packages")
    libraries = Path(pytest.__file__).parents[1]
    (own / "libraries.pth").write_text(f"{libraries}\n")
    pip = folder / "env" / "bin" / "pip"
    pip.write_text(
        f'#!/bin/sh\nexec {sys.executable} -m pip --python {folder}/env "$@" --quiet --ignore-installed --no-deps '
        "--no-index\n"
    )
    pip.chmod(0o755)
