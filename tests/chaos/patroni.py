"""Two PostgreSQL servers that Patroni looks after, with etcd to agree on the primary: Debian's packages, as they come.

Patroni promotes the standby of its own accord once the primary's lock in etcd has expired, and makes what is left of
the killed primary a standby again. With `synchronous_mode` it promotes only a server that has every commit.

Needs the Debian packages postgresql, patroni, etcd-server and python3-psycopg2.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import yaml

from tests.support.ports import free_port

PACKAGES = "postgresql patroni etcd-server python3-psycopg2"
USER = "postgres"
PATIENCE_SECONDS = 120
LOOK_SECONDS = 0.1

LOCK_SECONDS = 20
"""How long the dead primary's lock is kept: the least that Patroni accepts."""


class Member:
    """One Patroni, and the PostgreSQL that it looks after."""

    def __init__(self, name: str, folder: Path, etcd_port: int) -> None:
        self.port, self._api_port = free_port(), free_port()
        self._folder = folder / name
        self._folder.mkdir()
        shutil.chown(self._folder, USER)
        self._settings = folder / f"{name}.yaml"
        self._settings.write_text(yaml.safe_dump(self._described(name, etcd_port)))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin, or begin again on the same data."""
        self._process = _start(self._folder, "patroni", str(self._settings))

    def kill(self) -> None:
        """Kill Patroni and PostgreSQL at once, as the loss of their machine does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(FileNotFoundError):
            pid = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
            os.kill(pid, signal.SIGQUIT)
            _await(lambda: not Path(f"/proc/{pid}").exists(), "PostgreSQL to end")

    def answers(self, role: str) -> bool:
        """Whether Patroni says that it has this role: `primary` or `synchronous`."""
        try:
            return httpx.get(f"http://127.0.0.1:{self._api_port}/{role}", trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def has_standby(self) -> bool:
        """Whether its commits wait for a standby."""
        query = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'"
        with self.connect() as connection:
            return connection.execute(query).fetchone() is not None

    def connect(self) -> psycopg.Connection:
        """A session of this server."""
        return psycopg.connect(f"host=127.0.0.1 port={self.port} user=postgres", autocommit=True)

    def _described(self, name: str, etcd_port: int) -> dict[str, Any]:
        (programs,) = Path("/usr/lib/postgresql").glob("*/bin")
        return {
            "scope": "flows",
            "name": name,
            "restapi": {"listen": f"127.0.0.1:{self._api_port}", "connect_address": f"127.0.0.1:{self._api_port}"},
            "etcd3": {"host": f"127.0.0.1:{etcd_port}"},
            "bootstrap": {
                "dcs": {
                    "ttl": LOCK_SECONDS,
                    "loop_wait": 2,
                    "retry_timeout": 5,
                    "synchronous_mode": True,
                    "postgresql": {"use_pg_rewind": True, "parameters": {"wal_log_hints": "on"}},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}",
                "connect_address": f"127.0.0.1:{self.port}",
                "data_dir": str(self._folder / "data"),
                "bin_dir": str(programs),
                "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "postgres"}},
                "parameters": {"unix_socket_directories": str(self._folder)},
                "pg_hba": [f"host {databases} all 127.0.0.1/32 trust" for databases in ("all", "replication")],
            },
        }


class PatroniPair:
    """Both members, and a URL that leads to the primary."""

    def __init__(self, folder: Path, etcd_port: int) -> None:
        self._members = [Member(name, folder, etcd_port) for name in ("a", "b")]
        ports = ",".join(str(member.port) for member in self._members)
        self.url = f"postgresql://postgres@/flows?host=127.0.0.1,127.0.0.1&port={ports}&target_session_attrs=read-write"

    def start(self) -> None:
        """Returns once one is the primary, and its commits wait for the other."""
        for member in self._members:
            member.start()
        self._await_both()
        with self._primary().connect() as connection:
            connection.execute("CREATE DATABASE flows")

    def fail_over(self) -> None:
        """Kill the primary; returns once the other one is, and the killed one is its synchronous standby."""
        killed = self._primary()
        (other,) = (member for member in self._members if member is not killed)
        killed.kill()
        _await(lambda: other.answers("primary"), "the standby to take over")
        killed.start()
        self._await_both()

    def stop(self) -> None:
        """End both."""
        for member in self._members:
            member.kill()

    def _primary(self) -> Member:
        (found,) = (member for member in self._members if member.answers("primary"))
        return found

    def _await_both(self) -> None:
        """Return when there is a primary, whose commits wait for the standby that Patroni would promote."""
        _await(lambda: any(member.answers("primary") for member in self._members), "a primary")
        primary = self._primary()
        (other,) = (member for member in self._members if member is not primary)
        _await(lambda: other.answers("synchronous") and primary.has_standby(), "a synchronous standby")


@contextmanager
def patroni_pair() -> Iterator[PatroniPair]:
    """Two new servers and an etcd, which are deleted at the end. Raises SystemExit if a package is missing."""
    if shutil.which("patroni") is None or shutil.which("etcd") is None or os.geteuid() != 0:
        raise SystemExit(f"this needs root, and Debian's packages: apt-get install {PACKAGES}")
    folder = Path(tempfile.mkdtemp(prefix="flowserver-ha-"))
    folder.chmod(0o755)
    port, peer_port = free_port(), free_port()
    (folder / "etcd").mkdir(mode=0o700)
    shutil.chown(folder / "etcd", USER)
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    etcd = _start(
        folder / "etcd",
        *("etcd", "--data-dir", str(folder / "etcd" / "data"), "--listen-client-urls", client),
        *("--advertise-client-urls", client, "--listen-peer-urls", peer),
        *("--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"),
    )
    try:
        _await(lambda: _is_healthy(client), "etcd")
        pair = PatroniPair(folder, port)
        try:
            pair.start()
            yield pair
        finally:
            pair.stop()
    finally:
        etcd.kill()
        etcd.wait()
        shutil.rmtree(folder)


def _is_healthy(url: str) -> bool:
    try:
        return json.loads(httpx.get(f"{url}/health", trust_env=False).text).get("health") == "true"
    except (httpx.TransportError, ValueError):
        return False


def _await(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < until, f"waited {PATIENCE_SECONDS} s for {what}"
        time.sleep(LOOK_SECONDS)


def _start(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    environment: Mapping[str, str] = {"LC_ALL": "C", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            command,
            user=USER,
            group=USER,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
