"""The unit file: systemd understands it, its settings exist, and a server has the time that it needs to stop."""

import re
import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

from typer.testing import CliRunner

from flowserver.cli.exit_codes import ExitCode
from flowserver.cli.main import app
from flowserver.cli.options import variable_of
from flowserver.settings import Settings
from tests.acceptance.test_compose import STOPPING_SECONDS

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "examples" / "deploy" / "flowserver.service"
TEXT = UNIT.read_text("utf-8")
EXPOSURE_MAX = 15
"""What `systemd-analyze security` may find, in tenths; a service without any protection has 96."""


def settings() -> Settings:
    """The settings that the unit gives."""
    names = {variable_of(name): name for name in Settings.model_fields}
    given = re.findall(r"^Environment=(\w+)=(.*)$", TEXT, re.M)
    return Settings(**{names[variable]: value for variable, value in given})


def section(name: str) -> dict[str, str]:
    """The last value of each key."""
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # keys are case-sensitive
    parser.read_string(TEXT)
    return dict(parser[name])


def test_the_command_and_the_settings_exist() -> None:
    _, *command = shlex.split(section("Service")["ExecStart"])
    assert CliRunner().invoke(app, [*command, "--help"]).exit_code == 0
    assert settings().database_url == f"sqlite:////var/lib/{section('Service')['StateDirectory']}/flowserver.db"


def test_a_server_has_the_time_that_it_needs_to_stop() -> None:
    assert int(section("Service")["TimeoutStopSec"]) >= settings().drain_seconds + STOPPING_SECONDS


def test_it_is_started_again_unless_that_would_not_help() -> None:
    service = section("Service")
    assert service["Restart"] == "on-failure"
    assert {int(each) for each in service["RestartPreventExitStatus"].split()} == {ExitCode.USAGE, ExitCode.CONFLICT}


def test_it_can_change_only_its_own_folder() -> None:
    service = section("Service")
    assert (service["DynamicUser"], service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "yes", "strict")
    assert service["CapabilityBoundingSet"] == ""
    assert not {"ReadWritePaths", "User", "ReadWriteDirectories"} & service.keys()


def test_systemd_understands_every_line(tmp_path: Path) -> None:
    """Where systemd is installed; elsewhere nothing could run the unit."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return
    unit = tmp_path / UNIT.name
    unit.write_text(re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", TEXT, flags=re.M))
    verified = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
    about = [line for line in (verified.stdout + verified.stderr).splitlines() if str(unit) in line]
    assert about == []
    rated = [analyze, "security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", unit]
    done = subprocess.run(rated, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:]
