"""A node that crashes, and reports that come twice: what the flow and its functions see."""

STEPS = """
  - type: parallel
    name: Both
    branches:
      - steps: [{type: task, name: Slow, resourceArn: 'acs:fc:::functions/slow'}]
      - steps: [{type: task, name: Quick, resourceArn: 'acs:fc:::functions/quick'}]
  - {type: wait, name: Rest, duration: 60}
  - {type: task, name: Last, resourceArn: 'acs:fc:::functions/last'}
"""
APPROVE = """
  - type: task
    name: Approve
    resourceArn: acs:fc:::functions/ask
    pattern: waitForCallback
    timeoutSeconds: 60
    retry: [{errors: [Again], intervalSeconds: 10, maxAttempts: 1}]
    inputMappings: [{target: token, source: $context.task.token}]
"""
CHILD = """
  - type: task
    name: Child
    resourceArn: acs:fnf:::flow/child
    pattern: sync
"""
JOB = """
  - type: task
    name: Job
    resourceArn: acs:fc:::functions/job
    pattern: sync
    serviceParams: {InvocationType: Async}
"""
CHILD_STEPS = """
  - {type: task, name: Work, resourceArn: 'acs:fc:::functions/work'}
"""


def messages(outcomes):
    return [finding.message for outcome in outcomes for finding in outcome.failures]


def keys(outcome, step):
    return [call.key for call in outcome.record.calls if call.step_name == step]


def test_calls_that_were_under_way_are_made_again_with_their_keys(run_tests):
    (outcome,) = run_tests(
        STEPS,
        """
tests:
  - name: a
    functions:
      slow: [{return: {n: 1}, after: 9s}, {return: {n: 2}, after: 9s}]
      quick: [{return: {}, after: 5s, crash: after}, {return: {}}]
      last: {}
    expect:
      calls: {Slow: 2, Quick: 2, Last: 1}
      took: 1m14s
      path: [Both, "Both[0].Slow", "Both[1].Quick", Rest, Last]
""",
    )
    assert messages([outcome]) == []
    assert len(set(keys(outcome, "Slow"))) == len(set(keys(outcome, "Quick"))) == 1


def test_a_crash_before_a_call_repeats_only_calls_that_were_made(run_tests):
    outcomes = run_tests(
        STEPS,
        """
tests:
  - name: a
    functions:
      slow: {return: {}, after: 3s, times: 2}
      quick: [{crash: before}, {return: {}}]
      last: [{crash: before}, {crash: before}, {return: {ok: true}}]
    expect: {calls: {Slow: 2, Quick: 1, Last: 1}, output: {ok: true}}
""",
    )
    assert messages(outcomes) == []


def test_waits_and_results_survive(run_tests):
    steps = STEPS.replace("name: Last", "name: Last, inputMappings: [{target: had, source: $local.both}]")
    steps = steps.replace(
        "  - {type: wait", "    outputMappings: [{target: both, source: '$local[*].n'}]\n  - {type: wait"
    )
    outcomes = run_tests(
        steps,
        """
tests:
  - name: a
    functions:
      quick: {return: {n: 2}}
      slow: [{return: {n: 1}, after: 7s, crash: after}, {return: {n: 3}}]
      last: {}
    expect: {calls: {Last: [{had: [3, 2]}], Quick: 1}, took: 67s}
""",
    )
    assert messages(outcomes) == []


def test_a_sub_flow_is_not_started_twice(run_tests):
    outcomes = run_tests(
        CHILD.replace("pattern: sync", "pattern: sync\n    timeoutSeconds: 100"),
        """
functions: {work: [{return: {n: 1}, after: 5s, crash: after}, {return: {n: 2}, after: 5s}]}
tests: [{name: a, flows: {child: {real: child.yaml}}, expect: {output: {n: 2}, calls: {Work: 2, Child: 1}, took: 10s}}]
""",
        child=CHILD_STEPS,
    )
    assert messages(outcomes) == []


def test_an_invocation_is_not_submitted_twice(run_tests):
    tests = "tests: [{name: a, functions: {job: [REPLIES]}, expect: {output: {n: 1}, calls: {Job: 1}, took: 5s}}]"
    replies = "{return: {n: 1}, after: 5s, crash: after}, {return: {n: 2}}"
    assert messages(run_tests(JOB, tests.replace("REPLIES", replies))) == []
    replies = "{crash: before}, {return: {n: 1}, after: 5s}"
    assert messages(run_tests(JOB, tests.replace("REPLIES", replies))) == []


def test_a_report_survives_a_crash(run_tests):
    outcomes = run_tests(
        APPROVE,
        """
tests:
  - name: a
    steps: {Approve: [{crash: after, after: 1s}, {}]}
    callbacks: {Approve: [{succeed: {by: ann}, after: 30s}, {succeed: {by: bob}, after: 40s}]}
    expect: {output: {by: ann}, calls: {Approve: 2}, took: 30s}
""",
    )
    assert messages(outcomes) == []


def test_a_report_that_comes_again_changes_nothing(run_tests):
    tests = "tests: [{name: a, callbacks: {Approve: REPORTS}, expect: {EXPECT}}]"
    rest = APPROVE + "  - {type: wait, name: Rest, duration: 100}\n"
    reports = "{succeed: {by: bob}, after: 1s, again: 5s}"
    expect = "output: {by: bob}, took: 101s, calls: {Approve: 1}"
    assert messages(run_tests(rest, tests.replace("REPORTS", reports).replace("EXPECT", expect))) == []


def test_a_failure_that_is_reported_again_is_refused_during_the_pause(run_tests):
    tests = "tests: [{name: a, callbacks: {Approve: [REPORT, {succeed: {}, after: 30s}]}, expect: {EXPECT}}]"
    report = "{fail: Again, after: 1s, again: 5s}"
    assert messages(run_tests(APPROVE, tests.replace("REPORT", report).replace("EXPECT", "took: 41s"))) == []
    late = "{fail: Again, after: 1s, again: 12s}"
    assert (
        messages(run_tests(APPROVE, tests.replace("REPORT", late).replace("EXPECT", "error: Again, took: 13s"))) == []
    )
