"""`apply` of `flows.yaml`: settings of flows, which their definitions do not have."""

import pytest

PASS = "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p}\n"


@pytest.fixture
def flowserver(run, server, monkeypatch, tmp_path):
    monkeypatch.setenv("FLOWSERVER_URL", server.url)
    monkeypatch.chdir(tmp_path)
    return run


def _apply(flowserver, tmp_path, flow, settings, *options):
    (tmp_path / f"{flow}.yaml").write_text(PASS)
    (tmp_path / "flows.yaml").write_text(f"flows: {settings}")
    return flowserver("apply", tmp_path, *options)


def test_settings_of_new_and_of_existing_flows(flowserver, tmp_path):
    created = _apply(flowserver, tmp_path, "set", "{set: {onRetriesExhausted: waitForRedrive}}", "--strict")
    assert (created.exit_code, created.stdout) == (0, "flow/set created\nsettings/set created\n")
    assert "on retries exhausted:  wait-for-redrive" in flowserver("flows", "describe", "set").stdout
    again = _apply(flowserver, tmp_path, "set", "{set: {onRetriesExhausted: waitForRedrive}}")
    assert again.stdout == "flow/set unchanged\nsettings/set unchanged\n"
    tried = _apply(flowserver, tmp_path, "set", "{set: {onRetriesExhausted: fail, retentionDays: 7}}", "--dry-run")
    assert "-onRetriesExhausted: waitForRedrive\n-retentionDays: null\n+onRetriesExhausted: fail\n" in tried.stdout
    assert flowserver("apply", tmp_path).exit_code == 0
    described = flowserver("flows", "describe", "set").stdout
    assert "retention days:        7\n" in described
    assert "on retries exhausted:  fail" in described
    assert _apply(flowserver, tmp_path, "set", "{set: {retentionDays: null}}").exit_code == 0
    assert "retention days" not in flowserver("flows", "describe", "set").stdout


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ("{wrong: {onRetriesExhausted: wait}}", 1, "settings/wrong: error[InvalidArgument]: "),
        (
            "{wrong: {onRetriesExausted: fail}}",
            2,
            "wrong: `onRetriesExausted` is unknown; did you mean `onRetriesExhausted`?",
        ),
        ("{wrong: {retentionDays: -1}}", 1, "settings/wrong: error[InvalidArgument]: "),
        ("{wrnog: {retentionDays: 1}}", 1, "settings/wrnog: error[unknown-flow]: there is no flow `wrnog`"),
        ("{wrong: {definition: x}}", 2, "wrong: a definition has a file of its own, wrong.yaml"),
        ("{wrong: fail}", 2, "wrong must be a mapping of settings"),
        ("[wrong]", 2, "a file of this name holds no definition"),
    ],
)
def test_a_mistake_prevents_all(flowserver, tmp_path, settings, code, words):
    tried = _apply(flowserver, tmp_path, "wrong", settings, "--dry-run")
    refused = _apply(flowserver, tmp_path, "wrong", settings)
    assert (refused.exit_code, tried.exit_code, refused.stdout, tried.stdout) == (code, code, "", "")
    assert words in refused.stderr
    assert flowserver("flows", "get", "wrong").exit_code == 3


@pytest.mark.parametrize("name", ["flows.yml", "functions.json", "schedules.yml"])
def test_another_suffix_is_not_taken_for_a_definition(flowserver, tmp_path, name):
    (tmp_path / name).write_text(PASS)
    for given in (tmp_path, tmp_path / name):
        refused = flowserver("apply", given)
        assert refused.exit_code == 2
        assert f"{name}: call it {name.partition('.')[0]}.yaml" in refused.stderr
