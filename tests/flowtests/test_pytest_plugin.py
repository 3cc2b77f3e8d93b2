"""pytest collects the same files, in a process of its own as a user starts it."""

import os
import subprocess
import sys

from tests.tidy.source_files import ROOT

FLOW = """version: v1
type: flow
steps:
  - {type: fail, name: Stop, error: Broken}
  - {type: task, name: Call, resourceArn: 'acs:fc:::functions/f'}
"""
TESTS = """flow: flow.yaml
tests:
  - {name: good, expect: {error: Broken}}
  - {name: bad, steps: {Call: {never: true}}, expect: {error: Other}}
"""
CALL = """version: v1
type: flow
steps: [{type: task, name: Call, resourceArn: 'acs:fc:::functions/f'}]
"""
REAL = """flow: call.yaml
functions: {f: {real: 'handler.py:f'}}
tests: [{name: real, expect: {output: {step: Call}}}]
"""


def test_tests_are_items(tmp_path):
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "flow.flowtest.yaml").write_text(TESTS)
    (tmp_path / "call.yaml").write_text(CALL)
    (tmp_path / "real.flowtest.yaml").write_text(REAL)
    (tmp_path / "handler.py").write_text("def f(event, context):\n    return {'step': context.step_name}\n")
    (tmp_path / "broken.flowtest.yaml").write_text("flow: flow.yaml\ntests: [{nmae: a}]\n")
    options = ["-q", "-p", "no:cacheprovider", "-p", "flowserver.cli.pytest_plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--continue-on-collection-errors", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "1 failed, 2 passed, 1 warning, 1 error" in done.stdout, done.stdout + done.stderr
    assert "flow.flowtest.yaml:4:63: failed: expected the error Other, got Failed with Broken" in done.stdout
    assert "broken.flowtest.yaml:2:10: error[unknown-attribute]: `nmae` is not an attribute of a test" in done.stdout
    assert "Traceback" not in done.stdout
