"""docker-compose.yml and the Dockerfile, as far as they can be checked without an engine: names refer to something."""

import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from sqlalchemy import make_url
from typer.testing import CliRunner

from flowserver.cli.main import app
from flowserver.cli.options import variable_of
from flowserver.settings import Settings

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text("utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", TEXT))  # with every default filled in
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
NODES = {name: service for name, service in SERVICES.items() if name.startswith("flowserver-")}
NODE = NODES["flowserver-1"]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
CADDYFILE = COMPOSE["configs"]["caddyfile"]["content"]
STOPPING_SECONDS = 10
"""The time that a service manager should allow a node beside its drain; docs/how-to/install.md names it."""


def seconds(duration: str) -> int:
    return int(duration.removesuffix("s"))


def settings_of(service: dict[str, Any]) -> Settings:
    names = {variable_of(name): name for name in Settings.model_fields}
    given = {variable: value for variable, value in service["environment"].items() if variable != "PGPASSWORD"}
    return Settings(**{names[variable]: value for variable, value in given.items()})


def test_a_password_may_hold_any_characters() -> None:
    """None of it is in a URL; PostgreSQL's client library takes the variable as it is."""
    raw = yaml.safe_load(TEXT)["services"]
    password = raw["postgres"]["environment"]["POSTGRES_PASSWORD"]
    for service in (raw["migrate"], raw["flowserver-1"], raw["flowserver-2"]):
        assert service["environment"]["PGPASSWORD"] == password
        assert "$" not in service["environment"]["FLOWSERVER_DATABASE_URL"]


def test_the_image_runs_as_a_user_that_owns_nothing_but_the_data() -> None:
    """The base can be pinned, the packages are; the database's folder is a volume's, as the rest is read-only."""
    assert re.search(r"^ARG PYTHON=(\S+)\nFROM \$\{PYTHON\}$", DOCKERFILE, re.M)
    assert "--require-hashes" in DOCKERFILE
    assert [NODE["build"], NODE["read_only"]] == [".", True]
    last_run, user = DOCKERFILE.rindex("\nRUN "), DOCKERFILE.rindex("\nUSER ")
    assert last_run < user
    (number,) = re.findall(r"^USER (\d+)$", DOCKERFILE, re.M)
    assert f"useradd --system --uid {number} flowserver" in DOCKERFILE
    assert int(number) > 0
    assert re.findall(r"docker build|--build-arg (\w+)=\S+@sha256:", DOCKERFILE) == ["", "PYTHON"]
    (program,) = re.findall(r'^ENTRYPOINT \["(\w+)"\]$', DOCKERFILE, re.M)
    assert program in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    (data,) = set(re.findall(r"chown flowserver (\S+)$", DOCKERFILE, re.M))
    variables = dict(re.findall(r"(FLOWSERVER_\w+)=(\S+)", DOCKERFILE))
    assert variables == {"FLOWSERVER_HOST": "0.0.0.0", "FLOWSERVER_DATABASE_URL": f"sqlite:///{data}/flowserver.db"}


def test_two_nodes_differ_only_in_their_names() -> None:
    assert len(NODES) == 2
    assert list(NODES.values()) == [NODE, NODE]
    assert settings_of(SERVICES["migrate"]) == settings_of(NODE)
    assert SERVICES["migrate"]["build"] == NODE["build"]


def test_services_wait_for_services_that_can_reach_that_state() -> None:
    for service in SERVICES.values():
        for name, dependency in service.get("depends_on", {}).items():
            if dependency["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[name]
            else:
                assert dependency["condition"] == "service_completed_successfully"
                assert "restart" not in SERVICES[name]
    assert NODE["depends_on"].keys() == {"migrate"}


def test_volumes_and_configs_are_declared() -> None:
    used = {volume.partition(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])}
    assert used == COMPOSE["volumes"].keys()
    used = {config["source"] for service in SERVICES.values() for config in service.get("configs", [])}
    assert used == COMPOSE["configs"].keys()


def test_an_inline_config_needs_a_writable_container() -> None:
    """Compose refuses an inline config in a read-only container."""
    read_only = {name for name, service in SERVICES.items() if service.get("read_only")}
    assert read_only == SERVICES.keys() - {name for name, service in SERVICES.items() if "configs" in service}


def test_nodes_use_the_database_of_this_file() -> None:
    settings = settings_of(NODE)
    url = make_url(settings.database_url)
    database = SERVICES["postgres"]["environment"]
    assert url.host in SERVICES
    assert (url.username, NODE["environment"]["PGPASSWORD"], url.database) == tuple(
        database[f"POSTGRES_{name}"] for name in ("USER", "PASSWORD", "DB")
    )


def test_a_node_has_enough_time_to_stop() -> None:
    assert seconds(NODE["stop_grace_period"]) >= settings_of(NODE).drain_seconds + STOPPING_SECONDS


def test_ports_are_open_to_this_machine_only() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"proxy": ["127.0.0.1:8080:8080"]}


def test_commands_exist() -> None:
    (default,) = re.findall(r'^CMD \["(\w+)"\]$', DOCKERFILE, re.M)
    typed = re.findall(r"docker compose run --rm ([\w-]+) (.+?)(?:  +#.*)?$", TEXT, re.M)
    assert {name for name, _ in typed} <= SERVICES.keys()
    commands = [[default], SERVICES["migrate"]["command"], *(shlex.split(command) for _, command in typed)]
    assert len(commands) == 3
    for command in commands:
        shown = CliRunner().invoke(app, [*command, "--help"])
        assert shown.exit_code == 0, shown.output
    started = re.findall(r"docker compose up .*--wait ([\w-]+)", TEXT)
    assert started == list(NODES)


def test_the_image_has_all_that_the_build_needs(tmp_path: Path) -> None:
    """The copied files are enough to build the package, including migrations."""
    sent = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for copied in re.findall(r"^COPY (.+)$", DOCKERFILE, re.M):
        *sources, target = copied.split()
        for source in sources:
            assert f"!{source}" in sent
            there = tmp_path / (source if target == "./" else target)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, there, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, there)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    names = ZipFile(wheel).namelist()
    assert "flowserver/_migrations/env.py" in names
    assert "flowserver/cli/main.py" in names


@pytest.mark.parametrize(("status", "is_healthy"), [(200, True), (503, False)])
def test_the_health_check_reads_a_nodes_answer(status: int, is_healthy: bool) -> None:
    asked = []

    class Node(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    kind, program, *arguments = NODE["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "python")
    with HTTPServer(("127.0.0.1", 0), Node) as server:
        server.timeout = 30
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        own_port = [argument.replace(f":{settings_of(NODE).port}", f":{server.server_port}") for argument in arguments]
        checked = subprocess.run([sys.executable, *own_port], capture_output=True, timeout=30)
        thread.join()
    assert (checked.returncode == 0) == is_healthy
    assert asked == re.findall(r"^ *health_uri (\S+)$", CADDYFILE, re.M)


def test_the_proxy_knows_the_nodes_and_repeats_only_safe_requests() -> None:
    assert "$" not in CADDYFILE  # Compose would take it for a variable
    assert CADDYFILE.count("{") == CADDYFILE.count("}")
    (upstreams,) = re.findall(r"^ *reverse_proxy (.+) {$", CADDYFILE, re.M)
    assert upstreams.split() == [f"{name}:{settings_of(NODE).port}" for name in NODES]
    (matched,) = re.findall(r"lb_retry_match {\n(.*?)}", CADDYFILE, re.S)
    assert matched.split() == ["method", "GET", "path", "/v1/*"]  # GET / may start an execution
