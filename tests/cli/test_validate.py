"""`flowserver validate`: its output for a definition, and the exit code."""

import json

import pytest

from flowserver.base.limits import Limits

VALID = "version: v1\ntype: flow\nsteps:\n  - type: pass\n    name: p\n"
WARNED = "version: v1\ntype: flow\nsteps:\n  - type: choice\n    name: c\n    choices:\n      - condition: $.a == 1\n"
WRONG = "version: v1\ntype: flow\nsteps:\n  - type: pass\n    nmae: p\n"
REF = "version: v1\ntype: flow\nsteps:\n  - {type: task, name: t, resourceArn: !Ref shop/charge}\n"


@pytest.fixture
def definition(tmp_path):
    def write(text):
        file = tmp_path / f"flow{len(list(tmp_path.iterdir()))}.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(file)

    return write


def test_valid_definition(run, definition):
    file = definition(VALID)
    result = run("validate", file)
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"{file}: valid\n", "")


def test_every_error_has_place_line_caret_and_hint(run, definition):
    file = definition(WRONG)
    result = run("validate", file)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    head = lines.index(f"{file}:5:5: error[unknown-attribute]: `nmae` is not an attribute of a pass step")
    assert lines[head + 1] == "    5 |     nmae: p"
    assert lines[head + 2] == "      |     ^^^^"
    assert lines[head + 3] == "  hint: did you mean `name`?"
    assert any("error[missing-attribute]" in line for line in lines)
    assert lines[-1] == f"{file}: 2 errors"


def test_no_colours_outside_a_terminal_nor_cut_lines(run, definition):
    long = VALID.replace("p\n", f"{'p' * 200}\n")
    result = run("validate", definition(long))
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) > 100


def test_colours_in_a_terminal(run, definition, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = run("validate", definition(WRONG)).stdout
    assert "\x1b[31merror[unknown-attribute]" in coloured.replace("1;31", "31")


def test_warnings_count_on_request(run, definition):
    file = definition(WARNED)
    assert run("validate", file).exit_code == 0
    strict = run("validate", "--strict", file)
    assert strict.exit_code == 1
    assert strict.stdout.splitlines()[-1] == f"{file}: valid, 1 warning"


def test_standard_input_keeps_its_bytes(run):
    result = run("validate", "-", stdin=b"\xef\xbb\xbf" + VALID.replace("\n", "\r\n").encode())
    assert (result.exit_code, result.stdout) == (0, "-: valid\n")


def test_tags_of_deployment_tools_are_accepted(run, definition):
    assert run("validate", definition(REF)).exit_code == 0


def test_limits_of_the_cloud(run, definition, monkeypatch):
    used = []
    of = Limits.of
    monkeypatch.setattr(Limits, "of", staticmethod(lambda profile: used.append(profile) or of(profile)))
    file = definition(VALID)
    run("validate", file)
    run("validate", "--limits", "cloud", file)
    monkeypatch.setenv("FLOWSERVER_LIMITS", "cloud")
    run("validate", file)
    assert used == ["default", "cloud", "cloud"]


def test_json_for_programs(run, definition):
    wrong, valid = definition(WRONG), definition(VALID)
    result = run("validate", "--format", "json", wrong, valid)
    assert result.exit_code == 1
    first, second = json.loads(result.stdout)
    assert second == {"file": valid, "valid": True, "diagnostics": []}
    assert (first["file"], first["valid"]) == (wrong, False)
    assert first["diagnostics"][0] == {
        "id": "missing-attribute",
        "severity": "error",
        "message": first["diagnostics"][0]["message"],
        "line": 4,
        "column": 5,
        "endLine": 4,
        "endColumn": first["diagnostics"][0]["endColumn"],
        "hint": first["diagnostics"][0]["hint"],
        "target": None,
        "page": "docs/reference/diagnostics.md",
        "path": [],
    }


FAILS = VALID + "    outputMappings: [{target: a, source: $local.b}]\n"


def test_findings_of_rules_are_among_them_and_can_be_left_out(run, definition):
    file = definition(FAILS)
    found = run("validate", file)
    assert found.exit_code == 1
    assert found.stdout.splitlines()[-1] == f"{file}: 1 error; a server takes it all the same"
    assert f"{file}:6:42: error[always-missing]: `$local.b` finds nothing" in found.stdout
    assert found.stderr.splitlines() == [
        "why a finding is true: flowserver prove --explain always-missing, or docs/reference/rules.md#always-missing",
        "to suppress a finding, write behind the line or above the step: # flowserver: ignore always-missing REASON",
    ]
    (document,) = json.loads(run("validate", "-o", "json", file).stdout)
    assert document["valid"]
    assert document["diagnostics"][0]["page"] == "docs/reference/rules.md#always-missing"
    left_out = run("validate", "--no-rules", "--strict", file)
    assert (left_out.exit_code, left_out.stdout) == (0, f"{file}: valid\n")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda folder: folder / "absent.yaml", "No such file or directory"),
        (lambda folder: folder / "absent.yaml" / "inner", "No such file or directory"),
    ],
)
def test_files_that_cannot_be_read(run, definition, tmp_path, make, reason):
    file, valid = make(tmp_path), definition(VALID)
    result = run("validate", str(file), valid)
    assert result.exit_code == 3
    assert result.stderr == f"flowserver: {file}: {reason}\n"
    assert result.stdout == f"{valid}: valid\n"


def test_file_that_is_not_utf8(run, definition):
    file = definition(VALID.encode() + b"# caf\xe9\n")
    result = run("validate", file)
    assert result.exit_code == 3
    assert result.stderr == f"flowserver: {file}: not UTF-8 text (at byte {len(VALID) + 6})\n"


def test_strictness(run, definition, monkeypatch):
    file = definition(VALID + "    end:\n    nmae: q\n")
    strict, lenient = run("validate", file), run("validate", "--lenient", file)
    assert (strict.exit_code, lenient.exit_code) == (1, 0)
    assert f"{file}:7:5: error[unknown-attribute]: " in strict.stdout
    assert f"{file}:6:5: error[empty-attribute]: `end` has no value" in strict.stdout
    assert f"{file}:7:5: warning[unknown-attribute]: " in lenient.stdout
    assert lenient.stdout.count("  hint: ") == strict.stdout.count("  hint: ") == 2
    assert lenient.stdout.splitlines()[-1] == f"{file}: valid, 2 warnings"
    assert run("validate", "--lenient", "--strict", file).exit_code == 1
    monkeypatch.setenv("FLOWSERVER_LENIENT", "true")
    assert run("validate", file).exit_code == 0
    assert run("validate", "--no-lenient", file).exit_code == 1


def test_a_folder_is_checked_without_files_that_describe_no_flow(run, tmp_path):
    folder = tmp_path / "flows"
    (folder / "inner").mkdir(parents=True)
    (folder / "a.yaml").write_text(VALID)
    (folder / "inner" / "b.yml").write_text(WRONG)
    (folder / "schedules.yaml").write_text("schedules: {}")
    result = run("validate", folder, "-o", "json")
    assert result.exit_code == 1
    assert [(each["file"], each["valid"]) for each in json.loads(result.stdout)] == [
        (f"{folder}/a.yaml", True), (f"{folder}/inner/b.yml", False)
    ]  # fmt: skip
    (tmp_path / "empty").mkdir()
    assert run("validate", tmp_path / "empty").exit_code == 3
