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
    assert lines[-1] == "valid.yaml: no errors; at most 0 calls, 6 events, 0s"
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
        "uncaught": [],
        "fits": [],
    }
    (lost,) = json.loads(run("prove", "-o", "json", "lost.yaml").stdout)
    assert lost["valid"], "as for `validate`: a server takes it"
    (found,) = warned["diagnostics"]
    assert (found["id"], found["severity"], found["line"]) == ("missing-on-path", "warning", 14)
    assert [(step["step"], step["line"]) for step in found["path"]] == [("charge", 5), ("mail", 12)]
    assert found["page"] == "docs/reference/rules.md#missing-on-path"
    assert warned["uncaught"] == [
        {"step": "charge", "line": 5, "caught": ["Declined"]},
        {"step": "ship", "line": 10, "caught": []},
        {"step": "mail", "line": 12, "caught": []},
    ]


def test_the_last_lines_say_which_errors_end_the_flow_and_what_fits(run, folder):
    assert run("prove", "warned.yaml").stdout.splitlines()[-1] == (
        "warned.yaml: errors of these tasks end it: charge (but Declined), ship, mail"
    )
    keys = ", ".join(f"{{target: aRatherLongKey{number}, source: $input.item}}" for number in range(3))
    (folder / "each.yaml").write_text(
        "version: v1\ntype: flow\nsteps:\n  - type: foreach\n    name: pack\n"
        "    iterationMapping: {collection: $.items, item: item}\n"
        f"    steps: [{{type: pass, name: label, outputMappings: [{keys}]}}]\n    outputMappings: []\n"
    )
    result = run("prove", "each.yaml")
    assert result.stdout.splitlines()[-1] == "each.yaml: pack: at most 4,228 iterations fit, of 61 bytes or more each"
    (document,) = json.loads(run("prove", "-o", "json", "each.yaml").stdout)
    assert document["fits"] == [{"step": "pack", "line": 5, "itemBytes": 61, "itemsMax": 4228}]


def test_a_rule_is_explained(run):
    explained = run("prove", "--explain", "catch-never-matches")
    assert explained.exit_code == 0
    assert explained.stdout.startswith(
        "# catch-never-matches\n\nA catch rule names only errors that earlier rules name."
    )
    assert explained.stdout.count("```yaml\nversion: v1") == 2
    assert run("prove", "--explain", "unreachable-step").stdout.startswith(
        "# unreachable-step\n\nWarning: no way leads"
    )
    missing = run("prove", "--explain", "catch-never-match")
    assert (missing.exit_code, missing.stderr) == (
        3,
        "flowserver: `catch-never-match` is no rule; did you mean `catch-never-matches`?\n",
    )
    assert run("prove").exit_code == 2


def test_sarif(run, folder):
    assert run("prove", ".", "--sarif", "out.sarif").exit_code == 1
    report = json.loads((folder / "out.sarif").read_text())
    assert report["version"] == "2.1.0"
    assert report["$schema"].endswith("sarif-2.1.0.json")
    (made,) = report["runs"]
    rules = made["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted({result["ruleId"] for result in made["results"]})
    assert all("A flow that has it:" in rule["help"]["markdown"] for rule in rules)
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


def test_the_limits_are_those_of_a_server_with_the_same_settings(run, folder, monkeypatch):
    constant = f"outputMappings: [{{target: a, source: {'x' * 40_000}}}]"
    (folder / "large.yaml").write_text(VALID.replace("name: p", f"name: p, {constant}"))
    assert run("prove", "large.yaml").exit_code == 0
    assert "error[passes-limit]" in run("prove", "--limits", "cloud", "large.yaml").stdout
    monkeypatch.setenv("FLOWSERVER_LIMITS", "cloud")
    assert "error[passes-limit]" in run("prove", "large.yaml").stdout


def test_flows_of_the_files_that_start_one_another_are_found(run, folder):
    start = VALID.replace("{type: pass, name: p}", "{type: task, name: p, resourceArn: 'acs:fnf:::flow/NEXT'}")
    for name, started in (("a", "b"), ("b", "a"), ("alone", "a")):
        (folder / f"{name}.yaml").write_text(start.replace("NEXT", started))
    for command in ("prove", "validate"):
        found = run(command, "a.yaml", "b.yaml", "alone.yaml").stdout.splitlines()
        assert [line for line in found if "starts-itself" in line] == [
            "a.yaml:4:5: warning[starts-itself]: every way through `a` starts itself again: `a` → `b` → `a`",
            "b.yaml:4:5: warning[starts-itself]: every way through `b` starts itself again: `b` → `a` → `b`",
        ]
        assert "starts-itself" not in run(command, "a.yaml").stdout
