"""Cases run in virtual time: what mocks answer, and when."""

from flowserver.base.limits import Limits

CHARGE = """
  - type: task
    name: Charge
    resourceArn: acs:fc:::services/pay/functions/charge
    retry: [{errors: [FC.ResourceThrottled], maxAttempts: 5}]
    catch: [{errors: [Declined], goto: Refund}]
    end: true
  - type: succeed
    name: Refund
"""
APPROVE = """
  - type: task
    name: Approve
    resourceArn: acs:fc:::services/ask/functions/send
    pattern: waitForCallback
    timeoutSeconds: 864000
    inputMappings: [{target: token, source: $context.task.token}]
"""
CHILD = """
  - type: task
    name: Child
    resourceArn: acs:fnf:::flow/child
    pattern: sync
"""


def ends(outcomes):
    return [(str(each.record.execution.status), each.record.execution.error) for each in outcomes]


def messages(outcomes):
    return [finding.message for outcome in outcomes for finding in outcome.failures]


def test_a_wait_of_a_month_takes_no_time(run_tests):
    steps = APPROVE.replace("864000", "8640000")
    tests = "tests: [{name: a, callbacks: {Approve: {after: 30d, succeed: {}}}, expect: {took: 30d}}]"
    (outcome,) = run_tests(steps, tests)
    assert outcome.passed
    assert outcome.record.took_ms == 30 * 86_400_000
    assert outcome.seconds < 5


def test_replies_are_consumed_in_order(run_tests):
    outcomes = run_tests(
        CHARGE,
        """
functions:
  pay/functions/charge:
    - {error: FC.ResourceThrottled, times: 2}
    - {return: {ok: true}, after: 3s, always: true}
tests:
  - {name: succeeds, expect: {output: {ok: true}, calls: {Charge: 3}, path: [Charge], took: 6s}}
  - name: declined
    functions: {pay/functions/charge: [{error: Declined}]}
    expect: {path: [Charge, Refund], calls: {services/pay/functions/charge: 1}}
""",
    )
    assert messages(outcomes) == []


def test_functions_are_named_as_they_are_registered(run_tests):
    steps = """
  - {type: task, name: Charge, resourceArn: 'acs:fc:::services/pay/functions/charge'}
  - {type: task, name: Ship, resourceArn: 'acs:fc:::services/shop.v2/functions/ship'}
  - {type: task, name: Mail, resourceArn: 'acs:fc:::functions/mail'}
"""
    tests = """
functions: {pay/charge: {}, shop.v2/ship: {}, '-/mail': {}}
tests: [{name: a, expect: {calls: {pay/charge: 1, shop/ship: 1, '-/mail': 1}, atMostOnce: [pay/charge]}}]
"""
    (outcome,) = run_tests(steps, tests)
    assert outcome.passed, messages([outcome])


def test_a_call_without_a_mock_fails_the_test_at_both_places(run_tests):
    (outcome,) = run_tests(CHARGE, "tests:\n  - name: a\n")
    (failure,) = outcome.failures
    assert failure.message == "step Charge calls `services/pay/functions/charge`, which has no mock"
    assert (failure.place.span.line, failure.definition.span.line) == (3, 5)
    assert failure.hint.startswith("add `functions: {services/pay/functions/charge:")


def test_an_exhausted_list_fails_the_test_at_its_line(run_tests):
    (outcome,) = run_tests(
        CHARGE, "tests:\n  - name: a\n    steps:\n      Charge: [{error: FC.ResourceThrottled, times: 2}]\n"
    )
    (failure,) = outcome.failures
    assert failure.message == "the mock `Charge` has no more replies: step Charge makes call 3"
    assert (failure.place.span.line, failure.definition.span.line) == (5, 5)


def test_replies_that_are_left_are_warned_of(run_tests):
    (outcome,) = run_tests(
        CHARGE + APPROVE,
        "tests:\n  - {name: a, functions: {charge: {return: {}, times: 3}}, callbacks: {Approve: {never: true}}}",
    )
    assert outcome.passed
    assert [each.message for each in outcome.warnings] == [
        "the mock `Approve` of callbacks is not used",
        "1 of the 3 replies of `charge` are used",
    ]


def test_callbacks_report_after_their_time(run_tests):
    outcomes = run_tests(
        APPROVE,
        """
callbacks: {Approve: [{after: 2d, succeed: {by: bob}}]}
tests:
  - {name: approved, expect: {output: {by: bob}, took: 2d, calls: {Approve: 1}}}
  - {name: rejected, callbacks: {Approve: {fail: No, cause: why}}, expect: {error: No, cause: why}}
  - {name: silent, callbacks: {Approve: {never: true}}, expect: {error: FnF.TaskTimeout, took: 10d}}
  - {name: call fails, functions: {send: {error: Down}}, expect: {error: Down}}
""",
    )
    assert messages(outcomes) == []


def test_a_callback_that_no_mock_reports_fails_the_test(run_tests):
    (outcome,) = run_tests(APPROVE, "tests: [{name: a, functions: {send: {return: {}}}}]")
    assert messages([outcome]) == ["step Approve waits for a callback, and the test has none"]


def test_sub_flows_are_mocked_or_run(run_tests):
    outcomes = run_tests(
        CHILD,
        """
tests:
  - {name: mocked, flows: {child: {return: {a: 1}, after: 1d}}, expect: {output: {a: 1}, took: 1d}}
  - {name: fails, flows: {child: {error: Broken}}, expect: {error: Broken}}
  - name: runs
    input: {x: 1}
    flows: {child: {real: child.yaml}}
    expect: {output: {made: 1}, took: 60s, path: [Child]}
  - {name: runs by its step, input: {x: 1}, steps: {Child: {real: child.yaml}}, expect: {output: {made: 1}}}
""",
        child="""
  - {type: wait, name: Minute, duration: 60}
  - {type: pass, name: Make, outputMappings: [{target: made, source: $input.x}]}
""",
    )
    assert messages(outcomes) == []


def test_queues_answer_as_the_service_does(run_tests):
    (outcome,) = run_tests(
        """
  - type: task
    name: Send
    resourceArn: acs:mns:::/queues/orders/messages
    inputMappings: [{target: MessageBody, source: hello}]
    serviceParams: {MessageBody: $.MessageBody}
""",
        """
queues: {orders: {always: true}}
tests: [{name: a, expect: {calls: {orders: [{MessageBody: hello}]}, outputIncludes: {}}}]
""",
    )
    assert outcome.passed
    assert set(outcome.record.execution.output) == {"MessageId", "RequestId", "MessageBodyMD5"}


def test_iterations_are_named_by_path(run_tests):
    outcomes = run_tests(
        """
  - type: foreach
    name: pack
    iterationMapping: {collection: $.items, item: item}
    steps:
      - {type: task, name: label, resourceArn: 'acs:fc:::services/s/functions/label'}
""",
        """
input: {items: [a, b]}
steps:
  pack[1].label: {error: Torn}
  label: {return: {}}
tests:
  - name: one fails
    expect: {error: Torn, path: [pack, "pack[0].label", "pack[].label"], calls: {"pack[0].label": 1, label: 2}}
""",
    )
    assert messages(outcomes) == []


def test_executions_begin_at_a_known_instant(run_tests):
    steps = """
  - {type: wait, name: Until, timestamp: $.at}
  - {type: pass, name: Out, outputMappings: [{target: at, source: $context.execution.startedTime}]}
"""
    outcomes = run_tests(
        steps,
        """
startedAt: 2026-03-01T00:00:00Z
input: {at: 2026-03-02T00:00:00Z}
tests:
  - {name: a, expect: {took: 1d, output: {at: 2026-03-01T00:00:00.000Z}}}
  - {name: b, startedAt: 2026-03-01T12:00:00Z, expect: {took: 12h}}
""",
    )
    assert messages(outcomes) == []


LOOP = """
  - {type: pass, name: Turn}
  - {type: wait, name: Rest, duration: 1}
  - {type: choice, name: Again, choices: [{condition: '1 == 1', goto: Turn}]}
"""


def test_a_loop_without_an_end_fails_clearly(run_tests):
    limits = Limits(flow_test_events_max=200)
    (outcome,) = run_tests(LOOP, "tests: [{name: a}]", limits=limits)
    assert messages([outcome]) == ["the execution does not end: it has made more than 200 events"]
    assert "Turn, Rest, Again" in outcome.failures[0].hint
    (outcome,) = run_tests(LOOP, "tests: [{name: a}]", limits=Limits(flow_test_turns_max=10))
    assert messages([outcome]) == ["the execution does not end: it has made more than 10 turns"]


def test_asynchronous_invocations_end_later(run_tests):
    outcomes = run_tests(
        """
  - type: task
    name: Work
    resourceArn: acs:fc:::services/s/functions/work
    pattern: sync
    serviceParams: {InvocationType: Async}
""",
        "tests: [{name: a, functions: {work: {return: {a: 1}, after: 1h}}, expect: {output: {a: 1}, took: 1h}}]",
    )
    assert messages(outcomes) == []


def test_a_result_that_is_no_object_is_an_error(run_tests):
    outcomes = run_tests(CHARGE, "tests: [{name: a, steps: {Charge: {return: 3}}, expect: {error: FnF.InvalidLocal}}]")
    assert messages(outcomes) == []


def test_a_flow_that_starts_itself_without_an_end_fails_clearly(run_tests):
    steps = "  - {type: task, name: Again, resourceArn: 'acs:fnf:::flow/flow', pattern: sync}\n"
    tests = "flows: {flow: {real: flow.yaml}}\ntests: [{name: a}]"
    (outcome,) = run_tests(steps, tests, limits=Limits(flow_test_turns_max=1500))
    assert messages([outcome]) == ["the execution does not end: it has made more than 1500 turns"]


def test_a_step_that_does_not_wait_gets_the_started_execution(run_tests):
    steps = CHILD.replace("    pattern: sync\n", "")
    tests = """
input: {x: 1}
tests:
  - {name: runs, flows: {child: {real: child.yaml}}, expect: {outputIncludes: {FlowName: child, Status: Running}}}
  - {name: mocked, flows: {child: {always: true}}, expect: {outputIncludes: {Input: '{"x":1}', Output: ""}}}
"""
    outcomes = run_tests(steps, tests, child="  - {type: pass, name: p}\n")
    assert messages(outcomes) == []
    assert "name: p" in outcomes[0].record.execution.output["FlowDefinition"]


def test_a_sub_flow_is_stopped_when_its_step_times_out(run_tests):
    child = """
  - {type: wait, name: Long, duration: 100}
  - {type: task, name: Work, resourceArn: 'acs:fc:::services/s/functions/work'}
"""
    tests = """
functions: {work: [{return: {}}]}
flows: {child: {real: child.yaml}}
tests: [{name: a, expect: {error: FnF.TaskTimeout, calls: {s/work: CALLS}, took: 5s}}]
"""
    owned = CHILD + "    timeoutSeconds: 5\n"
    assert messages(run_tests(owned, tests.replace("CALLS", "0"), child=child)) == []
    independent = f"{owned}    childLifecycle: independent\n"
    assert messages(run_tests(independent, tests.replace("CALLS", "1"), child=child)) == []
