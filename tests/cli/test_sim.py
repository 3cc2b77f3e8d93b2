"""`flowserver sim`: its output, recorded tests, reports and exit codes."""

import json
from xml.etree import ElementTree

import pytest
import yaml

HEAD = "version: v1\ntype: flow\nsteps:\n"
SAFE = HEAD + (
    "  - type: task\n    name: Charge\n    resourceArn: acs:fc:::functions/charge\n"
    "  - type: task\n    name: Ship\n    resourceArn: acs:fc:::functions/ship\n"
    "    errorMappings: [{target: why, source: $local.error}]\n"
    "    catch: [{errors: [FnF.ALL], goto: Refund}]\n    end: true\n"
    "  - {type: task, name: Refund, resourceArn: 'acs:fc:::functions/refund', retry: [{errors: [FnF.ALL]}]}\n"
    "  - {type: fail, name: NotShipped}\n"
)
LOST = SAFE.replace("[FnF.ALL], goto", "[SoldOut], goto")
NULL = HEAD + (
    "  - type: foreach\n    name: Each\n    inputMappings: [{target: items, source: $local.items}]\n"
    "    iterationMapping: {collection: $.items, item: it}\n    steps: [{type: pass, name: p}]\n"
)
TESTS = "flow: lost.yaml\nsim:\n  compensated: {Charge: Refund}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"safe": SAFE, "lost": LOST, "null": NULL}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "lost.flowtest.yaml").write_text(TESTS)
    return tmp_path


def test_the_shortest_run_and_both_places(run, folder):
    result = run("sim", "lost.yaml")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    message = "step Charge has succeeded and is not undone: Refund does not run"
    assert lines[0] == f"lost.yaml:4:5: error[compensated]: {message}"
    assert lines[1:3] == ["    4 |   - type: task", "      |     ^^^^^^^^^^"]
    assert lines[3] == "  lost.flowtest.yaml:3:17: the property in the test file"
    assert "runs break it, run " in lines[4]
    assert lines[5:7] == ["    0s          the execution starts with {}", "    0s  line 4  Charge returns {}"]
    assert lines[7].startswith("    0s  line 7  Ship fails with ")
    assert lines[-2].startswith("lost.flowtest.yaml: 1 broken; ")


def test_flows_that_are_right(run, folder):
    result = run("sim", "safe.yaml", "--runs", "50")
    assert result.exit_code == 0
    assert result.stdout.startswith("safe.yaml: no property broken; 50 runs with ")
    assert result.stdout == run("sim", "safe.yaml", "--runs", "50").stdout
    assert result.stdout != run("sim", "safe.yaml", "--runs", "50", "--seed", "2").stdout


def test_a_property_of_no_step_has_its_place_in_the_test_file(run, folder):
    (folder / "safe.flowtest.yaml").write_text("flow: safe.yaml\nsim: {always: ['$.calls.Ship < 1']}\n")
    lines = run("sim", "safe.yaml", "--runs", "5").stdout.splitlines()
    assert lines[0].startswith("safe.flowtest.yaml:2:16: error[always]: ")
    assert lines[1] == "    2 | sim: {always: ['$.calls.Ship < 1']}"
    assert not any(line.endswith("the property in the test file") for line in lines)


def test_recorded_values_are_written_out(run, folder):
    """Two replies with the same value have no anchor in common."""
    (folder / "lost.flowtest.yaml").write_text(
        "flow: lost.yaml\nfunctions: {charge: {return: {a: {b: 1}}, always: true}}\n"
        "sim: {always: ['$.calls.Charge < 2', '$.calls.Ship < 1']}\n"
    )
    assert run("sim", "lost.yaml", "--record", "new.flowtest.yaml").exit_code == 1
    text = (folder / "new.flowtest.yaml").read_text()
    assert text.count("b: 1") > 1
    assert "&id" not in text


def test_recorded_texts_keep_characters_that_end_lines_elsewhere(run, folder):
    """In the file, whose tests are a list with more indentation than they are written with."""
    text = "a \x85 b \u2028 c\n\u2029 d"
    (folder / "lost.flowtest.yaml").write_text(
        f"flow: lost.yaml\nfunctions: {{charge: {{return: {{a: {json.dumps(text)}}}, always: true}}}}\n"
        "sim: {always: ['$.calls.Charge < 2', '$.calls.Ship < 1']}\n"
        "tests:\n    - {name: n, expect: {never: [Refund]}}\n"
    )
    assert run("sim", "lost.yaml", "--record", "lost.flowtest.yaml").exit_code == 1
    recorded = yaml.safe_load((folder / "lost.flowtest.yaml").read_text())["tests"][1]
    assert text in json.dumps(recorded, ensure_ascii=False).replace("\\n", "\n")


def test_a_flow_and_its_test_file_are_one_simulation(run, folder):
    names = ["lost.yaml", "lost.flowtest.yaml", "./lost.yaml", "safe.yaml"]
    found = json.loads(run("sim", *names, "--runs", "3", "-o", "json").stdout)
    assert [each["file"] for each in found] == ["lost.flowtest.yaml", "safe.yaml"]


def test_tasks_without_faults_are_named(run, folder):
    few = run("sim", "safe.yaml", "--runs", "1").stdout
    assert "\n  0 of 3 tasks met each kind of fault; Charge met no " in few
    assert few.splitlines()[1].endswith("; no run calls Refund")
    assert "\n  3 of 3 tasks met each kind of fault\n" in run("sim", "safe.yaml").stdout


def test_a_run_that_explores_is_repeated(run, folder):
    (folder / "safe.flowtest.yaml").write_text("flow: safe.yaml\nsim: {always: ['$.calls.Refund < 2']}\n")
    (found,) = json.loads(run("sim", "-o", "json", "safe.yaml").stdout)
    number = found["failures"][0]["firstRun"]
    assert {fault["step"] for fault in found["failures"][0]["faults"]} == {"Ship", "Refund"}
    again = run("sim", "safe.yaml", "--run", number)
    assert (again.exit_code, "error[always]" in again.stdout) == (1, True)


def test_pairs_that_were_checked_are_named(run, folder):
    assert run("sim", "safe.yaml", "--runs", "50").stdout.endswith(
        "\n  checked to be undone, by their names: Charge by Refund\n"
    )
    (found,) = json.loads(run("sim", "safe.yaml", "--runs", "5", "-o", "json").stdout)
    assert found["undoneBy"] == [{"step": "Charge", "by": "Refund"}]
    assert "by their names" not in run("sim", "lost.yaml").stdout  # its test file says what is compensated


def test_exit_codes(run, folder):
    assert run("sim", "null.yaml").exit_code == 1
    assert run("sim", "absent.yaml").exit_code == 3
    (folder / "fails.yaml").write_text(HEAD + "  - {type: fail, name: f}\n")
    assert run("sim", "fails.yaml").exit_code == 0
    assert run("sim", "--strict", "fails.yaml").exit_code == 1
    (folder / "bad.yaml").write_text(HEAD + "  - {type: pas, name: f}\n")
    bad = run("sim", "bad.yaml")
    assert bad.exit_code == 2
    assert bad.stdout.startswith("bad.yaml:4:12: error[")
    (folder / "bad.flowtest.yaml").write_text("flow: safe.yaml\nsim: {fault: []}\n")
    bad = run("sim", "bad.flowtest.yaml")
    assert (bad.exit_code, "did you mean `faults`?" in bad.stdout) == (2, True)


def test_faults_of_the_command(run, folder):
    only = json.loads(run("sim", "lost.yaml", "-o", "json", "--fault", "slow", "--fault", "crash-at-commit").stdout)
    assert set(only[0]["faults"]) == {"slow", "crash-at-commit"}
    unknown = run("sim", "lost.yaml", "--fault", "slwo")
    assert unknown.exit_code == 2
    assert "'slwo' is no fault; there are error, unexpected-error, 5xx," in unknown.stderr


def test_standard_input_and_folders(run, folder):
    assert run("sim", "-", stdin=LOST).exit_code == 0  # without the properties of the test file there is a warning
    assert run("sim", "-o", "name", ".").stdout == "lost.flowtest.yaml\nnull.yaml\n"


def test_output_for_programs(run, folder):
    (found,) = json.loads(run("sim", "-o", "json", "null.yaml", "--runs", "10").stdout)
    assert (found["file"], found["runs"], found["seed"]) == ("null.yaml", 10, 1)
    assert found["statuses"] == {"Failed": 10}
    (failure,) = found["failures"]
    assert failure["property"] == "own-mistake"
    assert (failure["step"], failure["place"], failure["count"]) == ("Each", "null.yaml:4:5", 10)
    assert failure["story"][-1] == {"seconds": 0, "line": None, "text": "the execution fails with FnF.RuntimeError"}
    (lost,) = json.loads(run("sim", "-o", "json", "lost.yaml").stdout)
    (fault,) = lost["failures"][0]["faults"]
    assert (fault["step"], fault["entry"], fault["call"]) == ("Ship", 1, 1)


def test_one_run_is_repeated(run, folder):
    (found,) = json.loads(run("sim", "-o", "json", "lost.yaml").stdout)
    number = found["failures"][0]["firstRun"]
    result = run("sim", "lost.yaml", "--run", number)
    assert result.exit_code == 1
    assert f"  run {number}:\n    0s          the execution starts with {{}}\n" in result.stdout
    assert run("sim", "lost.yaml", "--run", "0").exit_code == 0


def test_a_recorded_test_fails_until_the_flow_is_right(run, folder):
    result = run("sim", "lost.yaml", "--record", "new.flowtest.yaml")
    assert result.exit_code == 1
    assert result.stderr.startswith("recorded in new.flowtest.yaml: compensated: run ")
    assert run("test", "new.flowtest.yaml").exit_code == 1
    (folder / "lost.yaml").write_text(SAFE)
    passed = run("test", "new.flowtest.yaml")
    assert (passed.exit_code, "warning" in passed.stdout) == (0, False)


def test_tests_are_added_to_a_file_with_its_text_as_it_is(run, folder):
    before = TESTS + "tests:\n  # the first one\n  - {name: good, functions: {charge: {}, ship: {}}}\n"
    (folder / "lost.flowtest.yaml").write_text(before)
    run("sim", "lost.yaml", "--record", "lost.flowtest.yaml")
    after = (folder / "lost.flowtest.yaml").read_text()
    assert after.startswith(before + "  - name: 'compensated: run ")
    tested = run("test", "lost.flowtest.yaml")
    assert (tested.exit_code, "1 passed, 1 failed" in tested.stdout) == (1, True)
    again = run("sim", "lost.yaml", "--record", "lost.flowtest.yaml")
    assert again.stderr == ""
    assert (folder / "lost.flowtest.yaml").read_text() == after


def test_tests_are_added_behind_those_in_the_middle_of_a_file(run, folder):
    """What is said before the next attribute stays before it."""
    begin = "tests:\n  - name: good\n    # all is well\n    functions: {charge: {}, ship: {}}\n"
    end = "\n# How it is simulated\n" + TESTS
    (folder / "lost.flowtest.yaml").write_text(begin + end)
    run("sim", "lost.yaml", "--record", "lost.flowtest.yaml")
    after = (folder / "lost.flowtest.yaml").read_text()
    assert after.startswith(begin + "  - name: 'compensated: run ")
    assert after.endswith(end)
    assert "1 passed, 1 failed" in run("test", "lost.flowtest.yaml").stdout


def test_tests_are_added_to_a_file_without_any(run, folder):
    run("sim", "lost.yaml", "--record", "lost.flowtest.yaml")
    assert (folder / "lost.flowtest.yaml").read_text().startswith(f"{TESTS}tests:\n- name: 'compensated: run ")


def test_a_file_with_no_place_for_tests_stays_as_it_is(run, folder):
    before = "tests: [{name: good, functions: {charge: {}, ship: {}}}]\n" + TESTS
    (folder / "lost.flowtest.yaml").write_text(before)
    result = run("sim", "lost.yaml", "--record", "lost.flowtest.yaml")
    assert result.exit_code == 5
    assert "record into another file" in result.stderr
    assert (folder / "lost.flowtest.yaml").read_text() == before
    assert run("sim", "lost.yaml", "--record", "lost.yaml").exit_code == 2


def test_junit_report(run, folder):
    run("sim", "lost.yaml", "null.yaml", "--junitxml", "report.xml")
    lost, null = ElementTree.parse(folder / "report.xml").getroot()
    assert (lost.get("tests"), lost.get("failures"), null.get("failures")) == ("7", "1", "1")
    (failed,) = (case for case in lost if case.find("failure") is not None)
    assert failed.get("name") == "compensated"
    assert "Ship fails with" in failed.find("failure").text
