"""`flowserver schedules`, and `schedules.yaml`."""

import json

import pytest

from flowserver.cli.remote import schedules
from tests.cli.conftest import one_line

PASS = "version: v1\ntype: flow\nsteps:\n  - {type: pass, name: p}\n"


@pytest.fixture
def flowserver(run, server, monkeypatch, tmp_path):
    monkeypatch.setenv("FLOWSERVER_URL", server.url)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(schedules, "START_SECONDS", 60.0)  # on a busy machine too
    (tmp_path / "etl.yaml").write_text(PASS)
    assert run("apply", "etl.yaml").exit_code == 0
    return run


def test_a_skipped_trigger_is_reported(flowserver, tmp_path):
    (tmp_path / "long.yaml").write_text(PASS.replace("type: pass, name: p", "type: wait, name: w, duration: 3600"))
    assert flowserver("apply", "long.yaml").exit_code == 0
    flowserver("schedules", "create", "long/nightly", "--every", "24h", "--overlap", "Skip")
    first = flowserver("schedules", "trigger", "long/nightly")
    assert first.exit_code == 0
    assert flowserver("executions", "describe", first.stdout.strip()).exit_code == 0
    second = flowserver("schedules", "trigger", "long/nightly")
    assert second.exit_code == 5
    assert "skipped: an execution of long/nightly still runs" in second.stderr
    assert flowserver("executions", "list", "--flow", "long", "-o", "name").stdout == first.stdout
    heads, row = (line.split() for line in flowserver("schedules", "list", "--flow", "long").stdout.splitlines())
    assert (heads[-3:-1], row[-2:]) == (["MISSED", "SKIPPED"], ["0", "1"])
    flowserver("executions", "stop", first.stdout.strip())


def test_what_is_queued_is_reported(flowserver, tmp_path):
    (tmp_path / "slow.yaml").write_text(PASS.replace("type: pass, name: p", "type: wait, name: w, duration: 3600"))
    assert flowserver("apply", "slow.yaml").exit_code == 0
    shown = flowserver("schedules", "create", "slow/nightly", "--cron", "0 30 2 * * ?", "--overlap", "BufferAll")
    assert "waiting:" not in shown.stdout
    first = flowserver("schedules", "trigger", "slow/nightly")
    path = first.stdout.strip()
    assert first.stderr == f"Started. Watch it: flowserver watch {path}\n"
    second = flowserver("schedules", "trigger", "slow/nightly")
    then = f"flowserver watch {second.stdout.strip()}"
    assert second.stderr == f"Queued behind {path}; not started yet. Watch it then: {then}\n"
    given = ("slow/nightly", "--from", "2026-01-02T00:00", "--to", "2026-01-05T00:00")
    for _ in range(2):  # the same backfill once more is the same
        assert (
            flowserver("schedules", "backfill", *given).stdout == f"3 ticks of slow/nightly: 3 queued behind {path}\n"
        )
    counts = json.loads(flowserver("schedules", "backfill", *given, "-o", "json").stdout)
    assert counts == {"ticks": 3, "started": 0, "skipped": 0, "queued": 3}
    shown = flowserver("schedules", "get", "slow/nightly").stdout
    assert (
        f"waiting:   1 start and 1 backfill (a backfill is a range of ticks), queued behind {path}\nqueue:\n" in shown
    )
    queue = shown.partition("queue:\n")[2].partition("next:")[0].splitlines()
    assert [line.split()[3] for line in queue] == ["trigger", "backfill"]
    listed = [line for line in flowserver("schedules", "list").stdout.splitlines() if "slow/nightly" in line]
    assert listed[0].split()[-3:] == ["2", "0", "0"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("create", "Default of a new schedule: AllowAll."),
        ("trigger", "Default: the schedule's own."),
        ("backfill", "Default: BufferAll, one after the other."),
    ],
)
def test_each_command_names_its_own_default_of_overlap(run, command, said):
    assert said in " ".join(run("schedules", command, "--help").stdout.split())


def test_created_changed_triggered_and_deleted(flowserver):
    arguments = ("--cron", "0 30 2 * * ?", "--timezone", "Europe/Berlin", "--overlap", "skip", "--catch-up", "1h")
    created = flowserver("schedules", "create", "etl/nightly", *arguments, "--payload", '{"a": 1}')
    assert created.exit_code == 0
    assert "next:" in created.stdout
    shown = json.loads(flowserver("schedules", "get", "etl/nightly", "-o", "json").stdout)
    assert (shown["timeZone"], shown["catchUpSeconds"], shown["payload"]) == ("Europe/Berlin", 3600, {"a": 1})
    assert flowserver("schedules", "create", "etl/nightly", "--every", "5m").exit_code == 5
    assert flowserver("schedules", "update", "etl/nightly", "--every", "90m", "--qualifier", "prod").exit_code == 0
    assert json.loads(flowserver("schedules", "get", "etl/nightly", "-o", "json").stdout)["qualifier"] == "prod"
    flowserver("schedules", "update", "etl/nightly", "--qualifier", "")
    assert flowserver("schedules", "pause", "etl/nightly", "--note", "moving").stdout == "paused etl/nightly\n"
    listed = flowserver("schedules", "list").stdout.splitlines()
    assert "@every 90m" in listed[1]
    assert "paused" in listed[1]
    assert "moving" in listed[1]
    assert flowserver("schedules", "resume", "etl/nightly").exit_code == 0
    path = flowserver("schedules", "trigger", "etl/nightly").stdout.strip()
    assert path.startswith("etl/nightly-")
    assert flowserver("schedules", "backfill", "etl/nightly", "--from", "3h").exit_code == 0
    assert flowserver("schedules", "list", "--flow", "etl", "-o", "name").stdout == "etl/nightly\n"
    assert flowserver("schedules", "delete", "etl/nightly").exit_code == 2
    assert flowserver("schedules", "delete", "etl/nightly", "--yes").stdout == "deleted etl/nightly\n"
    assert flowserver("schedules", "get", "etl/nightly").exit_code == 3


def test_times_are_shown_in_the_schedule_s_zone(flowserver, tmp_path):
    (tmp_path / "zoned.yaml").write_text(PASS)
    flowserver("apply", tmp_path / "zoned.yaml")
    created = ("schedules", "create", "zoned/n", "--cron", "0 30 2 1 1 ?", "--timezone")
    shown = flowserver(*created, "Asia/Kolkata").stdout.partition("next:\n")[2]
    assert [line.split(maxsplit=1)[1] for line in shown.splitlines()] == ["02:30:00 +05:30"] * 10
    _, line = flowserver("schedules", "list", "--flow", "zoned").stdout.splitlines()
    assert "-01-01 02:30:00 +05:30" in line
    flowserver("schedules", "pause", "zoned/n")
    assert flowserver("schedules", "get", "zoned/n").stdout.endswith("next:\n  paused\n")


def test_schedules_are_applied(flowserver, tmp_path):
    place = tmp_path / "flows"
    place.mkdir()
    (place / "job.yaml").write_text(PASS)
    (place / "schedules.yaml").write_text("schedules: {job/often: {cronExpression: '@every 5m', overlap: Skip}}")
    assert flowserver("apply", place).stdout == "flow/job created\nschedule/job/often created\n"
    assert flowserver("apply", place).stdout == "flow/job unchanged\nschedule/job/often unchanged\n"
    (place / "schedules.yaml").write_text("schedules: {job/often: {cronExpression: '@every 9m', overlap: Skip}}")
    changed = flowserver("apply", place).stdout
    assert "-cronExpression: '@every 5m'\n+cronExpression: '@every 9m'\n" in changed


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ("cronExpression: '0 0 25 * * ?'", "schedule/new/nightly: error[InvalidArgument]: cronExpression: "),
        ("cronExpression: '@every 5m', timeZone: Europe/Berlim", "schedule/new/nightly: error[InvalidArgument]: "),
        (
            "cronExpression: '@every 5m', overlap: Never",
            "schedule/new/nightly: error[InvalidArgument]: `overlap` must be one of Skip, BufferOne, BufferAll, "
            "CancelOther, TerminateOther, AllowAll, not 'Never'\n",
        ),
        ("cronExpression: '@every 5m', overlap: skp", "not 'skp'; did you mean `Skip`?\n"),
    ],
)
def test_a_wrong_schedule_prevents_all(flowserver, tmp_path, fields, words):
    place = tmp_path / "flows"
    place.mkdir()
    (place / "new.yaml").write_text(PASS)
    (place / "functions.yaml").write_text("functions: {new/f: {url: 'http://127.0.0.1:9/'}}")
    (place / "schedules.yaml").write_text(f"schedules: {{new/nightly: {{{fields}}}}}")
    tried, refused = flowserver("apply", place, "--dry-run"), flowserver("apply", place)
    assert (tried.exit_code, tried.stdout, tried.stderr) == (1, "", refused.stderr)
    assert refused.exit_code == 1
    assert words in refused.stderr
    assert "1 of 3 resources is refused; nothing is applied" in refused.stderr
    assert flowserver("flows", "get", "new").exit_code == 3
    assert flowserver("functions", "get", "new/f").exit_code == 3


def test_all_mistakes_of_schedules_are_said_at_once(flowserver, tmp_path):
    place = tmp_path / "flows.d"
    place.mkdir()
    for name in ("new", "other"):
        (place / f"{name}.yaml").write_text(PASS)
    text = """\
schedules:
  new/nightly:
    cronExpression: '61 0 2 * * ?'
    timeZone: Europe/Berlim
    overlap: Never
  new/often:
    cronExpression: '@every 5m'
    catchUpSeconds: 1
    remainingActions: -1
"""
    (place / "schedules.yaml").write_text(text)
    refused = flowserver("apply", place)
    assert refused.exit_code == 1
    *findings, last = refused.stderr.splitlines()
    found = [line.removeprefix(f"{place}/").replace(": error[InvalidArgument]", "") for line in findings]
    assert [line[: len(begin)] for line, begin in zip(found, BEGINNINGS, strict=True)] == BEGINNINGS
    assert last == "flowserver: 2 of 4 resources are refused; nothing is applied"


BEGINNINGS = [
    "schedules.yaml:5:5: schedule/new/nightly: `overlap` must be one of ",
    "schedules.yaml:4:5: schedule/new/nightly: timeZone: 'Europe/Berlim' is not",
    "schedules.yaml:3:5: schedule/new/nightly: cronExpression: seconds",
    "schedules.yaml:8:5: schedule/new/often: `catchUpSeconds` must be",
    "schedules.yaml:9:5: schedule/new/often: `remainingActions` must be",
]


def test_an_overlap_policy_may_be_written_as_the_option_has_it(flowserver, tmp_path):
    place = tmp_path / "flows"
    place.mkdir()
    (place / "spelt.yaml").write_text(PASS)
    (place / "schedules.yaml").write_text("schedules: {spelt/s: {cronExpression: '@every 5m', overlap: bufferall}}")
    assert flowserver("apply", place).stdout == "flow/spelt created\nschedule/spelt/s created\n"
    assert flowserver("apply", place).stdout == "flow/spelt unchanged\nschedule/spelt/s unchanged\n"


def test_a_schedule_of_a_flow_that_is_missing_prevents_all(flowserver, tmp_path):
    place = tmp_path / "flows"
    place.mkdir()
    (place / "present.yaml").write_text(PASS)
    (place / "schedules.yaml").write_text("schedules: {absent/nightly: {cronExpression: '@every 5m'}}")
    refused = flowserver("apply", place)
    assert refused.exit_code == 1
    assert "schedule/absent/nightly: error[unknown-flow]: there is no flow `absent` yet" in refused.stderr
    assert flowserver("flows", "get", "present").exit_code == 3


def test_a_qualifier_that_does_not_exist_is_a_warning_which_strict_refuses(flowserver, tmp_path):
    place = tmp_path / "flows"
    place.mkdir()
    (place / "aliased.yaml").write_text(PASS)
    (place / "schedules.yaml").write_text("schedules: {aliased/s: {cronExpression: '@every 5m', qualifier: nope}}")
    said = "warning[unknown-qualifier]: flow aliased has no alias nope yet: starts are refused"
    warning = f"{place}/schedules.yaml:1:13: schedule/aliased/s: {said}\n"
    assert flowserver("apply", place, "--dry-run").stderr.startswith(warning)
    for _ in range(2):  # before and after the schedule exists
        refused = flowserver("apply", place, "--strict")
        assert refused.exit_code == 1
        assert refused.stderr.startswith(warning)
        assert flowserver("apply", place).exit_code == 0
    created = flowserver("schedules", "create", "aliased/t", "--every", "5m", "--qualifier", "7")
    assert created.exit_code == 0
    assert created.stderr == "warning[unknown-qualifier]: flow aliased has no version 7 yet: starts are refused\n"
    assert flowserver("versions", "publish", "aliased").exit_code == 0
    assert flowserver("aliases", "create", "aliased", "nope", "--route", "1").exit_code == 0
    assert flowserver("apply", place, "--strict").exit_code == 0


def test_a_range_without_a_zone_is_in_the_schedules_zone(flowserver):
    flowserver("schedules", "create", "etl/kept", "--cron", "0 30 2 * * ?", "--timezone", "Asia/Tokyo")
    run = flowserver("schedules", "backfill", "etl/kept", "--from", "2026-01-02T02:30", "--to", "2026-01-03")
    assert run.stdout == "1 tick of etl/kept: 1 started\n"
    assert flowserver("watch", "etl/kept-20260101T173000Z").exit_code == 0
    again = flowserver("schedules", "backfill", "etl/kept", "--from", "2026-01-02T02:30", "--to", "2026-01-03")
    assert again.stdout == "1 tick of etl/kept: 1 skipped\n"
    said = "In the schedule's zone, Asia/Tokyo: from 2026-01-01T17:30:00.000Z to 2026-01-02T15:00:00.000Z.\n"
    assert run.stderr == said
    given = ("--from", "2026-01-04T02:30+09:00", "--to", "1d")
    assert flowserver("schedules", "backfill", "etl/kept", *given).stderr == ""
    deleted = flowserver("schedules", "delete", "etl/kept", "--yes", "-o", "json")
    assert json.loads(deleted.stdout) == {"name": "etl/kept", "change": "deleted"}


def test_pruning_deletes_schedules_if_there_is_a_file_of_them(flowserver, tmp_path):
    place = tmp_path / "flows"
    place.mkdir()
    for name in ("etl", "job"):
        (place / f"{name}.yaml").write_text(PASS)
    flowserver("apply", place)
    flowserver("schedules", "create", "job/by-hand", "--every", "5m")
    prune = ("apply", place, "--prune", "--yes", "-o", "name")
    assert "schedule/job/by-hand" not in flowserver(*prune).stdout
    (place / "schedules.yaml").write_text("schedules: {job/often: {cronExpression: '@every 5m'}}")
    assert flowserver("apply", place, "--prune").exit_code == 2
    assert flowserver(*prune).stdout.split()[-2:] == ["schedule/job/often", "schedule/job/by-hand"]
    assert flowserver("schedules", "list", "--flow", "job", "-o", "name").stdout == "job/often\n"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "words"),
    [
        (["create", "etl/x"], 2, "give --cron or --every"),
        (["create", "etl/x", "--cron", "61 0 2 * * ?"], 1, "flowserver: --cron: seconds"),
        (["create", "etl/x", "--cron", "CRON_TZ=UTC 0 0 2 * * ?"], 1, "`timeZone`"),
        (["create", "etl/x", "--cron", "* * *", "--every", "5m"], 2, "exclude each other"),
        (["create", "etl/x", "--every", "90s"], 2, "whole minutes"),
        (["create", "etl/x", "--cron", "* * *"], 1, ""),
        (["create", "elt/x", "--every", "5m"], 3, "did you mean etl?"),
        (["get", "etl"], 2, "a schedule is written FLOW/NAME"),
        (["get", "etl/none"], 3, ""),
    ],
)
def test_errors(flowserver, arguments, exit_code, words):
    result = flowserver("schedules", *arguments)
    assert result.exit_code == exit_code
    assert words in one_line(result)
