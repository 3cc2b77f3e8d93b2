"""What a case that fails says, and where."""

from flowserver.flowtests.findings import render_finding

PASS = """
  - type: pass
    name: Make
    outputMappings:
      - {target: order, source: {id: 7, items: [{n: 1}, {n: 2}]}}
  - {type: pass, name: Last}
"""
FAIL = "\n  - {type: fail, name: Stop, error: Broken, cause: it is late}\n"


def failures(run_tests, steps, expect, **others):
    (outcome,) = run_tests(steps, f"tests:\n  - name: a\n{others.get('more', '')}    expect:\n{expect}")
    return [(each.place.span.line, each.message, each.details) for each in outcome.failures]


def test_output_differs_at_the_line_of_the_value(run_tests):
    found = failures(
        run_tests,
        PASS,
        """      output:
        order:
          id: 8
          items: [{n: 1}, {n: 3}]
          state: new
""",
    )
    assert found == [
        (
            7,
            "output $.order.id: expected 8, got 7",
            (
                "$.order.items[1].n: expected 3, got 2",
                '$.order.state: expected "new", but there is no such member',
            ),
        )
    ]


def test_an_exact_output_has_no_other_members(run_tests):
    found = failures(run_tests, PASS, "      output: {order: {id: 7}}\n")
    assert found == [(5, 'output $.order.items: not expected, got [{"n":1},{"n":2}]', ())]
    assert failures(run_tests, PASS, "      outputIncludes: {order: {id: 7}}\n") == []


def test_true_is_not_one(run_tests):
    steps = "\n  - {type: pass, name: p, outputMappings: [{target: a, source: 1}]}\n"
    assert failures(run_tests, steps, "      output: {a: true}\n") == [(5, "output $.a: expected true, got 1", ())]
    assert failures(run_tests, steps, "      output: {a: 1.0}\n") == []


def test_an_execution_that_fails_fails_a_test_that_expects_nothing(run_tests):
    (outcome,) = run_tests(FAIL, "tests:\n  - name: a\n")
    (failure,) = outcome.failures
    assert failure.message == "expected the status Succeeded, got Failed with Broken (it is late)"
    assert failure.definition.span.line == 5
    lines = render_finding(failure).splitlines()
    assert lines[0].endswith("flow.flowtest.yaml:3:11: failed: " + failure.message)
    assert lines[1:3] == ["    3 |   - name: a", "      |           ^"]
    assert lines[3].endswith("flow.yaml:5:5: the step in the definition")
    assert "name: Stop" in lines[4]


def test_error_and_cause(run_tests):
    assert failures(run_tests, FAIL, "      error: Broken\n      causeIncludes: late\n") == []
    assert failures(run_tests, FAIL, "      status: Failed\n      cause: it is late\n") == []
    assert failures(run_tests, FAIL, "      error: Other\n")[0][:2] == (
        5,
        "expected the error Other, got Failed with Broken (it is late)",
    )
    assert failures(run_tests, FAIL, "      causeIncludes: early\n")[0][:2] == (
        5,
        "expected a cause with 'early', got 'it is late'",
    )
    assert failures(run_tests, PASS, "      error: Broken\n")[0][1] == "expected the error Broken, got Succeeded"


def test_path_shows_the_first_difference_and_all_steps(run_tests):
    found = failures(run_tests, PASS, "      path:\n        - Last\n")
    assert found == [(6, "path, entry 1: expected step Last, got step Make", ("+ Make", "  Last"))]
    found = failures(run_tests, PASS, "      path: [Make, Last, Last]\n")
    assert found == [(5, "path, entry 3: expected step Last, got the end", ("  Make", "  Last", "- Last"))]


def test_path_includes_and_never(run_tests):
    assert failures(run_tests, PASS, "      pathIncludes: [Make, Last]\n      never: []\n") == []
    found = failures(run_tests, PASS, "      pathIncludes: [Last, Make]\n      never: [Last]\n")
    assert [each[1] for each in found] == ["step Make was not entered after Last", "step Last was entered"]


def test_bounds_of_time(run_tests):
    steps = "\n  - {type: wait, name: w, duration: 90}\n"
    assert failures(run_tests, steps, '      took: ["> 1m", "<= 90s"]\n') == []
    found = failures(run_tests, steps, '      took: "< 1m"\n')
    assert found == [(5, "expected to take < 1m, took 1m30s", ())]


def test_counts_and_inputs_of_calls(run_tests):
    steps = """
  - type: task
    name: Call
    resourceArn: acs:fc:::services/s/functions/f
    inputMappings: [{target: a, source: 1}, {target: b, source: 2}]
"""
    mock = "    functions: {f: {return: {}}}\n"
    assert failures(run_tests, steps, "      calls: {f: [{a: 1, b: 2}]}\n", more=mock) == []
    assert failures(run_tests, steps, "      calls: {Call: {count: 1, inputsInclude: [{a: 1}]}}\n", more=mock) == []
    found = failures(run_tests, steps, "      calls: {Call: 2}\n", more=mock)
    assert found == [(6, "expected 2 calls of Call, got 1", ("Call",))]
    found = failures(run_tests, steps, "      calls: {f: [{a: 2, b: 2}]}\n", more=mock)
    assert found == [(6, "input of call 1 of f, by step Call, $.a: expected 2, got 1", ())]
