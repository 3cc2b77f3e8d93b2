"""The files of a release have checksums, and a signature by which the page lets anyone check them."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.server import clean_environment

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "install.md"
SECONDS = 60


def check(folder: Path) -> int:
    """The exit code of the page's lines, in the folder of a release."""
    section = PAGE.read_text("utf-8").partition("### Check a release")[2]
    [script] = re.findall(r"```bash norun\ncd dist\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    return subprocess.run(
        ["sh", "-e", "-c", script], cwd=folder, capture_output=True, env=clean_environment(), timeout=SECONDS
    ).returncode


@pytest.mark.parametrize("changed", [None, "flowserver.whl", "SHA256SUMS", "signers"])
def test_signed_checksums_prove_a_release_as_the_page_says(tmp_path: Path, changed: str | None) -> None:
    release, key = tmp_path / "dist", tmp_path / "key"
    release.mkdir()
    for name in ("flowserver.whl", "flowserver.cdx.json"):
        (release / name).write_text(name)
    for name in ("key", "strangers"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name]
        subprocess.run(command, check=True, env=clean_environment(), timeout=SECONDS)
    make = ["make", "--silent", "sums", f"DIST={release}", f"KEY={key}", "PYTHON=python3"]
    subprocess.run(make, cwd=ROOT, check=True, capture_output=True, env=clean_environment(), timeout=SECONDS)
    (release / "signers").write_text(f"flowserver {key.with_suffix('.pub').read_text()}")
    if changed == "signers":
        (release / "signers").write_text(f"flowserver {(tmp_path / 'strangers.pub').read_text()}")
    elif changed is not None:
        with (release / changed).open("a") as file:
            file.write("x")
    assert (check(release) == 0) is (changed is None)
