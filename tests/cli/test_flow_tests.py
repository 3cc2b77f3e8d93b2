"""`flowserver test`: its output, reports and exit codes."""

import json
import shutil
from xml.etree import ElementTree

import pytest

from tests.examples.conftest import EXAMPLES

FLOW = "version: v1\ntype: flow\nsteps:\n  - {type: fail, name: Stop, error: Broken}\n"
TESTS = "flow: flow.yaml\ntests:\n  - {name: good, expect: {error: Broken}}\n  - {name: bad}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "flow.flowtest.yaml").write_text(TESTS)
    return tmp_path


def test_the_examples_pass(run):
    result = run("test", EXAMPLES)
    assert result.exit_code == 0, result.stdout
    assert "warning" not in result.stdout
    assert result.stdout.splitlines()[-1].startswith("12 passed in ")


def test_failures_show_both_places(run, folder):
    result = run("test")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[:3] == [
        "flow.flowtest.yaml",
        "  ✔ good  0 calls, 0s of virtual time",
        "  ✘ bad  0 calls, 0s of virtual time",
    ]
    assert lines[3] == "flow.flowtest.yaml:4:12: failed: expected the status Succeeded, got Failed with Broken"
    assert lines[6] == "  flow.yaml:4:5: the step in the definition"
    assert lines[-1].startswith("1 passed, 1 failed in ")


def test_names_choose_tests(run, folder):
    assert run("test", "-k", "GOOD").exit_code == 0
    assert run("test", "-k", "flow.flowtest").exit_code == 1
    missing = run("test", "-k", "other")
    assert (missing.exit_code, missing.stderr) == (3, "flowserver: no test has 'other' in its name\n")


def test_a_file_only_for_simulations_has_no_tests(run, folder):
    (folder / "flow.flowtest.yaml").write_text("flow: flow.yaml\nfunctions: {}\nsim: {runs: 3}\n")
    missing = run("test")
    assert (missing.exit_code, missing.stderr) == (3, "flowserver: there are no tests\n")
    assert "warning" not in missing.stdout


def test_output_for_programs(run, folder):
    good, bad = json.loads(run("test", "-o", "json").stdout)
    assert (good["name"], good["outcome"], good["failures"]) == ("good", "passed", [])
    assert (bad["outcome"], bad["path"], bad["line"]) == ("failed", ["Stop"], 4)
    assert bad["failures"][0]["definition"] == "flow.yaml:4:5"
    assert run("test", "-o", "name").stdout == "flow.flowtest.yaml::bad\n"


def test_a_test_that_stops_says_no_time(run, folder):
    (folder / "flow.yaml").write_text(
        "version: v1\ntype: flow\nsteps: [{type: task, name: c, resourceArn: 'acs:fc:::functions/f'}]\n"
    )
    (folder / "flow.flowtest.yaml").write_text("flow: flow.yaml\ntests: [{name: a}]\n")
    result = run("test")
    assert result.exit_code == 1
    assert "  ✘ a  0 calls, not run to its end" in result.stdout.splitlines()


def test_a_file_with_mistakes_measures_nothing(run, folder):
    (folder / "flow.flowtest.yaml").write_text("flow: flow.yaml\ntests: [{nmae: a}]\n")
    result = run("test", "--coverage")
    assert result.exit_code == 2
    assert result.stdout.endswith("\nno coverage: no definition was tested\n")


def test_mistakes_have_an_exit_code_of_their_own(run, folder):
    (folder / "other.flowtest.yaml").write_text("flow: flow.yaml\ntests: [{nmae: a}]\n")
    result = run("test", "--junitxml", "report.xml")
    assert result.exit_code == 2
    assert "other.flowtest.yaml:2:10: error[unknown-attribute]: `nmae` is not an attribute of a test" in result.stdout
    assert "1 passed, 1 failed, 1 with mistakes in " in result.stdout
    suites = ElementTree.parse(folder / "report.xml").getroot()
    counts = [(suite.get("tests"), suite.get("failures"), suite.get("errors")) for suite in suites]
    assert counts == [("2", "1", "0"), ("1", "0", "1")]
    (failure,) = suites.iter("failure")
    assert failure.get("message") == "expected the status Succeeded, got Failed with Broken"


def test_folders_without_tests(run, tmp_path):
    result = run("test", tmp_path)
    assert (result.exit_code, result.stderr) == (3, f"flowserver: {tmp_path} holds no files *.flowtest.yaml\n")
    assert run("test", tmp_path / "no.flowtest.yaml").exit_code == 3


def test_a_definition_is_no_test(run, folder):
    result = run("test", "flow.yaml")
    expected = "flowserver: flow.yaml is no flow test: their names end in .flowtest.yaml\n"
    assert (result.exit_code, result.stderr) == (2, expected)


def test_mocks_that_no_test_uses_are_warned_of(run, folder):
    (folder / "flow.flowtest.yaml").write_text(
        "flow: flow.yaml\nsteps: {Call: {return: {}}}\ntests: [{name: a, expect: {error: Broken}}]\n"
    )
    (folder / "flow.yaml").write_text(f"{FLOW}  - {{type: task, name: Call, resourceArn: 'acs:fc:::functions/f'}}\n")
    result = run("test")
    assert result.exit_code == 0
    assert "flow.flowtest.yaml:2:9: warning: the mock `Call` of steps is not used by any test" in result.stdout


def test_replies_of_a_file_that_no_test_uses_are_warned_of(run, folder):
    """Each test begins with the first reply, so that one of them must use all."""
    call = "  - {type: task, name: NAME, resourceArn: 'acs:fc:::functions/f'}\n"
    (folder / "flow.yaml").write_text("version: v1\ntype: flow\nsteps:\n" + call.replace("NAME", "One"))
    (folder / "flow.flowtest.yaml").write_text(
        "flow: flow.yaml\nfunctions: {f: [{return: {}}, {error: E}]}\ntests: [{name: a}, {name: b}]\n"
    )
    warning = "flow.flowtest.yaml:2:13: warning: no test uses more than 1 of the 2 replies of `f`"
    result = run("test")
    assert (result.exit_code, warning in result.stdout) == (0, True), result.stdout
    (folder / "flow.yaml").write_text(
        "version: v1\ntype: flow\nsteps:\n"
        + call.replace("NAME", "One").replace("'}", "', catch: [{errors: [E], goto: End}]}")
        + call.replace("NAME", "Two").replace("'}", "', catch: [{errors: [E], goto: End}]}")
        + "  - {type: succeed, name: End}\n"
    )
    result = run("test")
    assert (result.exit_code, "warning" in result.stdout) == (0, False), result.stdout


def test_settings_of_the_server_apply(run, folder):
    (folder / "flow.yaml").write_text(
        "version: v1\ntype: flow\nsteps:\n"
        "  - {type: pass, name: p, outputMappings: [{target: a, source: $input.missing}]}\n"
    )
    (folder / "flow.flowtest.yaml").write_text("flow: flow.yaml\ntests: [{name: a, expect: {output: {a: null}}}]\n")
    assert run("test").exit_code == 0
    assert run("test", "--missing-source", "fail").exit_code == 1


def test_other_commands_pass_over_test_files_in_folders(run, folder):
    shutil.copy(EXAMPLES / "saga" / "flow.flowtest.yaml", folder / "saga.flowtest.yaml")
    assert run("validate", folder).stdout == f"{folder / 'flow.yaml'}: valid\n"


def test_coverage(run, folder):
    (folder / "flow.yaml").write_text(
        "version: v1\ntype: flow\nsteps:\n"
        "  - type: choice\n    name: c\n    choices: [{condition: $.a == 1, goto: p}]\n"
        "  - {type: pass, name: p}\n"
    )
    (folder / "flow.flowtest.yaml").write_text("flow: flow.yaml\ntests: [{name: a, input: {a: 2}}]\n")
    result = run("test", "--coverage", "--lcov", "c.info", "--fail-under", "80")
    assert result.exit_code == 1
    assert result.stderr == "flowserver: the coverage is 75.0 %, less than 80 %\n"
    assert result.stdout.splitlines()[-3:] == [
        "COVERAGE   STEPS  OPTIONS  RETRIES  CATCHES",
        "flow.yaml  2/2    1/2      -        -        75 %",
        "flow.yaml:6:15: not reached: option 1 of step c",
    ]
    assert "SF:flow.yaml" in (folder / "c.info").read_text()
    assert run("test", "--fail-under", "75").exit_code == 0
    document = json.loads(run("test", "--coverage", "-o", "json").stdout)
    assert document["coverage"][0]["options"] == {"reached": 1, "total": 2}
    assert document["tests"][0]["outcome"] == "passed"
