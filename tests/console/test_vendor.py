"""The bundled libraries."""

import hashlib
import json
import subprocess
from pathlib import Path

from tests.support.node import NODE

VENDOR = Path(__file__).parents[2] / "flowserver/console/vendor"
LICENCES = {"MIT", "Apache-2.0", "ISC", "BSD-3-Clause"}


def test_the_bundles_are_those_of_the_lock_file() -> None:
    lock = json.loads((VENDOR / "vendor.lock").read_text())
    shipped = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.glob("*.js")}
    assert shipped == {name: bundle["sha256"] for name, bundle in lock["bundles"].items()}


def test_every_bundled_package_has_a_licence_that_allows_it_and_its_text_is_shipped() -> None:
    lock = json.loads((VENDOR / "vendor.lock").read_text())
    texts = (VENDOR / "LICENSES").read_text()
    used = {name for bundle in lock["bundles"].values() for name in bundle["packages"]}
    assert used == lock["packages"].keys()
    for name, package in lock["packages"].items():
        assert package["license"] in LICENCES, name
        assert f"{name} {package['version']} ({package['license']})" in texts


def test_the_same_packages_give_the_same_bundles(tmp_path: Path) -> None:
    subprocess.run([NODE, str(Path(__file__).parent / "vendor" / "build.mjs"), str(tmp_path)], check=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in VENDOR.iterdir()
    }, "run `make vendor`"
