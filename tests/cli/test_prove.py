"""`flowserver prove`: its output, SARIF and exit codes."""

import json

import pytest

VALID = "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p}\n"
LOST = """version: v1
type: flow
steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/t/functions/charge
    outputMappings: [{target: receipt, source: $local.id}]
    errorMappings: [{target: why, source: $local.message}]
    catch: [{errors: [Declined], goto: mail}]
  - {type: task, name: ship, resourceArn: 'acs:fc:::services/t/functions/ship'}
  - type: task
    name: mail
    resourceArn: acs:fc:::services/t/functions/mail
    inputMappings: [{target: receipt, source: $local.receipt}]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "lost.yaml").write_text(LOST)
    (tmp_path / "valid.yaml").write_text(VALID)
    (tmp_path / "warned.yaml").write_text(LOST.replace("message", "error"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_findings_and_exit_codes(run, folder):
    result = run("prove", "lost.yaml", "valid.yaml")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("lost.yaml:8:43: error[always-missing]: `$local.message` finds nothing")
    assert lines[-1] == "valid.yaml: no errors; at most 0 calls, 6 events, 0 seconds"
    assert "  way:\n    line 5: charge fails with Declined, which is caught\n    line 12: mail reads" in result.stdout
    assert run("prove", "valid.yaml").exit_code == run("prove", "warned.yaml").exit_code == 0
    assert run("prove", "--strict", "warned.yaml").exit_code == 1
    assert run("prove", "absent.yaml").exit_code == 3
    assert run("prove", "-o", "name", ".").stdout == "lost.yaml\n"
    assert run("prove", "-", stdin=LOST).exit_code == 1


def test_json_has_the_ways_and_the_worst_case(run, folder):
    result = run("prove", "-o", "json", "warned.yaml", "valid.yaml")
    warned, valid = json.loads(result.stdout)
    assert valid == {
        "file": "valid.yaml",
        "valid": True,
        "diagnostics": [],
        "worstCase": {"seconds": 0, "calls": 0, "events": 6, "lists": 1},
    }
    (found,) = warned["diagnostics"]
    assert (found["id"], found["severity"], found["line"]) == ("missing-on-path", "warning", 14)
    assert [(step["step"], step["line"]) for step in found["path"]] == [("charge", 5), ("mail", 12)]


def test_sarif(run, folder):
    assert run("prove", ".", "--sarif", "out.sarif").exit_code == 1
    report = json.loads((folder / "out.sarif").read_text())
    assert report["version"] == "2.1.0"
    assert report["$schema"].endswith("sarif-2.1.0.json")
    (made,) = report["runs"]
    rules = made["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted({result["ruleId"] for result in made["results"]})
    for result in made["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning")
        assert result["message"]["text"]
        (location,) = result["locations"]
        region = location["physicalLocation"]["region"]
        assert region["startLine"] <= region["endLine"]
        assert not location["physicalLocation"]["artifactLocation"]["uri"].startswith("/")
    (flow,) = next(result for result in made["results"] if result["ruleId"] == "missing-on-path")["codeFlows"]
    (thread,) = flow["threadFlows"]
    assert [each["location"]["message"]["text"].split()[0] for each in thread["locations"]] == ["charge", "mail"]
    assert run("prove", "valid.yaml", "--sarif", "absent/out.sarif").exit_code == 3
