"""The service's two tutorials, run as in their READMEs: by curl and by SDK, in real time."""

import re
from pathlib import Path

import pytest

from tests.examples.conftest import EXAMPLES, Run, functions_served
from tests.hosting.tutorial_handlers import ECHO, GET_JOB_STATUS, START_JOB

PROGRAMS = ["run_with_sdk.py", "curl.sh"]
NEVER = "1000000000"
POLL = ["Wait10s", "GetJobStatus", "CheckJobComplete"]


def entered(output: str) -> list[str]:
    """The entered steps in the output of the polling example."""
    return re.findall(r"StepEntered (\w+)", output) or re.findall(r"^   (\w+)$", output, re.M)


@pytest.mark.slow
def test_polling(open_server: dict[str, str], tmp_path: Path) -> None:
    """Both programs, each with a job of 20 seconds and an endless job; in parallel, as each takes long."""
    with functions_served("polling", open_server):
        runs = {
            (program, delay): Run(EXAMPLES / "polling" / program, *delay, variables=open_server, folder=tmp_path)
            for program in PROGRAMS
            for delay in ((), (NEVER,))
        }
        results = {key: run.result() for key, run in runs.items()}
    for program in PROGRAMS:
        code, output = results[program, ()]
        assert code == 0, output
        assert "Succeeded" in output.splitlines()[-1]
        assert '"job_status":"success"' in output.splitlines()[-1]
        polls = entered(output).count("GetJobStatus")
        assert 1 <= polls <= 3, output  # the job's 20 seconds began before the program did
        assert entered(output) == ["StartJob", "Init", *POLL * polls, "JobSucceeded"]
        code, output = results[program, (NEVER,)]
        assert code == 1, output
        assert "Failed" in output.splitlines()[-1]
        assert entered(output) == ["StartJob", "Init", *POLL * 4, "JobFailed"]
    assert '"error":"FnF.Failed"' in results["run_with_sdk.py", (NEVER,)][1]


@pytest.mark.parametrize("server", ["open_server", "keyed_server"])
def test_callback(request: pytest.FixtureRequest, server: str, tmp_path: Path) -> None:
    variables: dict[str, str] = request.getfixturevalue(server)
    with functions_served("callback", variables):
        for program in PROGRAMS:
            run = Run(EXAMPLES / "callback" / program, variables=variables, folder=tmp_path)
            code, output = run.result()
            assert code == 0, output
            assert output.splitlines()[-1].split() == ["Succeeded", '{"s":"ok"}']


def test_programs_report_missing_functions(open_server: dict[str, str], tmp_path: Path) -> None:
    with functions_served("callback", open_server):
        pass
    for program in PROGRAMS:
        run = Run(EXAMPLES / "polling" / program, variables=open_server, folder=tmp_path)
        code, output = run.result()
        assert code == 1, output
        assert "Failed" in output


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("polling/start_job.py", START_JOB),
        ("polling/get_job_status.py", GET_JOB_STATUS),
        ("callback/index.py", ECHO),
    ],
)
def test_functions_are_the_tutorials_own(file: str, text: str) -> None:
    assert (EXAMPLES / file).read_text("utf-8") == text
