"""Stand-ins run only where the program is missing, and do what the program does."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import ssh_keygen
from tests.support.stand_ins import STAND_INS, path_with_stand_ins


def test_a_program_that_is_installed_runs_itself(tmp_path: Path) -> None:
    for name in STAND_INS:
        assert shutil.which(name, path=path_with_stand_ins(str(tmp_path)))
        assert path_with_stand_ins(str(tmp_path)).startswith(f"{tmp_path}:")
        (tmp_path / name).touch(mode=0o755)
        assert shutil.which(name, path=path_with_stand_ins(str(tmp_path))) == str(tmp_path / name)
    assert path_with_stand_ins(str(tmp_path)) == str(tmp_path)


@pytest.mark.parametrize("spoilt", [None, "message", "identity", "namespace"])
def test_ssh_keygen_verifies_what_it_signs(tmp_path: Path, spoilt: str | None) -> None:
    key, file = tmp_path / "key", tmp_path / "sums"
    file.write_bytes(b"sums")
    ssh_keygen.make_key(key)
    ssh_keygen.sign(key, "release", file)
    signers = tmp_path / "signers"
    signers.write_text(f"someone {key.with_suffix('.pub').read_text()}")

    identity = "stranger" if spoilt == "identity" else "someone"
    namespace = "file" if spoilt == "namespace" else "release"
    message = b"others" if spoilt == "message" else b"sums"
    verified = ssh_keygen.verify(signers, identity, namespace, tmp_path / "sums.sig", message)

    assert verified is (spoilt is None)
    real = shutil.which("ssh-keygen")
    if real is not None:
        command = [real, "-Y", "verify", "-f", signers, "-I", identity, "-n", namespace, "-s", tmp_path / "sums.sig"]
        done = subprocess.run(command, input=message, capture_output=True, timeout=30, check=False)
        assert (done.returncode == 0) is (spoilt is None)
