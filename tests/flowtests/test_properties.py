"""Properties that a test expects of its run: `never`, `atMostOnce`, `compensated`, `always`."""

import pytest

SAGA = """
  - type: task
    name: Book
    resourceArn: acs:fc:::services/trips/functions/book
    catch: [{errors: [FnF.TaskTimeout, FC.Unknown], goto: Cancel}]
    timeoutSeconds: 60
  - type: task
    name: Pay
    resourceArn: acs:fc:::services/bank/functions/pay
    errorMappings: [{target: why, source: $local.error}]
    catch: [{errors: [Declined], goto: Cancel}, {errors: [Odd], goto: Done}]
  - {type: succeed, name: Done}
  - {type: task, name: Cancel, resourceArn: 'acs:fc:::services/trips/functions/cancel'}
  - {type: fail, name: NotPaid}
"""
LOOP = """
  - type: foreach
    name: Trips
    iterationMapping: {collection: $.trips, item: trip}
    steps:
      - type: task
        name: Book
        resourceArn: acs:fc:::services/trips/functions/book
      - type: choice
        name: Late
        choices: [{condition: $.trip == "late", steps: [{type: pass, name: Cancel}]}]
      - type: choice
        name: Odd
        choices: [{condition: $.trip == "odd", goto: Book}]
"""


@pytest.fixture
def messages(run_tests):
    """What is wrong with a run of a saga in which all calls but those given return."""

    def run(expect: str, mocks: str = "{}", steps: str = SAGA, given: str = "{}") -> list[str]:
        functions = "functions: {book: {always: true}, pay: {always: true}, cancel: {always: true}}"
        if steps == LOOP:
            functions = "functions: {book: {always: true}}"
        tests = f"{functions}\ninput: {given}\ntests:\n  - {{name: a, steps: {mocks}, expect: {{{expect}}}}}\n"
        (outcome,) = run_tests(steps, tests)
        return [each.message for each in outcome.failures]

    return run


@pytest.mark.parametrize(
    ("mocks", "broken"),
    [
        ("{}", None),
        ("{Pay: {error: Declined}}", None),
        ("{Pay: {error: Other}}", "step Book has succeeded and is not undone: Cancel does not run"),
        ("{Book: {error: FC.Unknown}}", None),
        ("{Book: {error: FC.Unknown}, Cancel: {error: E}}", None),
        (
            "{Pay: {error: Declined}, Cancel: {error: E}}",
            "step Book has succeeded and is not undone: Cancel does not succeed",
        ),
        ("{Book: {never: true}}", None),
        ("{Book: {error: Sold}}", None),
    ],
)
def test_compensated_if_the_execution_does_not_succeed(messages, mocks, broken):
    assert messages("status: Any, compensated: {Book: Cancel}", mocks) == ([broken] if broken else [])


RETRIED = "retry: [{errors: [Busy], maxAttempts: 2}]"
CAUGHT = "errorMappings: [{target: e, source: $local.error}], catch: [{errors: [FnF.ALL], goto: NotPaid}]"
FAILS = "step Book has succeeded and is not undone: Cancel does not succeed"


@pytest.mark.parametrize(
    ("attributes", "undo", "broken"),
    [
        (CAUGHT, "Cancel", FAILS),
        (CAUGHT, "{by: Cancel, mayFail: true}", None),
        (CAUGHT, "{by: Cancel, mayFail: false}", FAILS),
        (RETRIED, "Cancel", None),
        (RETRIED.replace("Busy", "Other"), "Cancel", FAILS),
        (f"{RETRIED}, {CAUGHT}", "Cancel", FAILS),
    ],
    ids=["caught", "may fail", "may not fail", "after its retries", "no retry of this error", "retried and caught"],
)
def test_what_undoes_a_step_has_to_succeed(messages, attributes, undo, broken):
    """Unless the execution ends in it after its retries: a redrive goes on with it."""
    steps = SAGA.replace("functions/cancel'}", f"functions/cancel', {attributes}}}")
    found = messages(
        f"status: Any, compensated: {{Book: {undo}}}",
        "{Pay: {error: Declined}, Cancel: {error: Busy, always: true}}",
        steps,
    )
    assert found == ([broken] if broken else [])


def test_compensated_only_if_the_work_may_be_done(messages):
    steps = SAGA.replace("FC.Unknown", "Sold")
    found = messages("status: Any, compensated: {Book: Cancel}", "{Book: {error: Sold}}", steps)
    assert found == ["step Cancel runs, although Book has not succeeded"]


def test_compensated_only_if_the_execution_does_not_succeed(messages):
    steps = SAGA.replace("{type: fail, name: NotPaid}", "{type: succeed, name: Over}")
    declined = "{Pay: {error: Declined}}"
    assert messages("compensated: {Book: Cancel}", declined, steps) == [
        "step Cancel runs, although the execution succeeds"
    ]
    assert messages("compensated: {Book: {by: Cancel, when: $.succeeded.Pay == 0}}", declined, steps) == []
    assert messages('compensated: {Book: {by: Cancel, when: "$.calls.Pay > 9"}}', declined, steps) == [
        "step Cancel runs, although `$.calls.Pay > 9` is not true"
    ]


def test_iterations_are_compensated_by_themselves(messages):
    expect = "status: Any, compensated: {Book: {by: Late, when: 'true'}}"
    assert messages(expect, steps=LOOP, given="{trips: [late, late]}") == []
    wanted = "compensated: {Book: {by: Cancel, when: 'true'}}"
    assert messages(wanted, steps=LOOP, given="{trips: [late, early]}") == [
        "step Trips[1].Book has succeeded and is not undone: Cancel does not run"
    ]


def test_nested_iterations_belong_together(run_tests):
    steps = """
  - type: foreach
    name: Trips
    iterationMapping: {collection: $.trips, item: trip}
    steps:
      - type: foreach
        name: Legs
        iterationMapping: {collection: $.trip, item: leg}
        steps: [{type: task, name: Book, resourceArn: 'acs:fc:::functions/book'}]
      - type: choice
        name: Late
        choices: [{condition: '$.trip[0] == "late"', steps: [{type: pass, name: Cancel}]}]
"""
    wanted = "compensated: {Book: {by: Cancel, when: 'true'}}"
    functions = "functions: {book: {always: true}}"
    given = "{trips: [[late, a], [b, c], [late]]}"

    def found(trips: str) -> list[str]:
        tests = f"{functions}\ninput: {trips}\ntests: [{{name: a, expect: {{{wanted}}}}}]\n"
        return [each.message for each in run_tests(steps, tests)[0].failures]

    assert found(given) == ["step Trips[1].Legs[0].Book has succeeded and is not undone: Cancel does not run"]
    assert found("{trips: [[late, a], [late]]}") == []


def test_at_most_once_is_for_each_iteration(messages):
    assert messages("atMostOnce: [Book]", steps=LOOP, given="{trips: [a, b]}") == []
    assert messages("atMostOnce: ['Trips[].Book']", steps=LOOP, given="{trips: [a, b]}") == []
    assert messages("atMostOnce: [trips/functions/book]", steps=LOOP, given="{trips: [a, b]}") == [
        "trips/functions/book is called with 2 idempotency keys"
    ]


def test_at_most_once_counts_entries_and_not_calls(messages):
    crash = "{Book: [{crash: after}, {return: {}}]}"
    assert messages("atMostOnce: [Book, book], calls: {Book: 2}", crash) == []
    again = SAGA.replace("goto: Done", "goto: Book")
    twice = "{Pay: [{error: Odd}, {return: {}}]}"
    assert messages("atMostOnce: [Book]", twice, again) == ["step Book runs 2 times"]
    assert messages("atMostOnce: [book]", twice, again) == ["book is called with 2 idempotency keys"]


def test_never(messages):
    assert messages("never: [Cancel]") == []
    assert messages("status: Any, never: [Pay]", "{Pay: {error: E}}") == ["step Pay was entered"]


@pytest.mark.parametrize(
    "condition",
    [
        '$.status == "Failed"',
        '$.error == "FnF.Failed"',
        "$.entered.Book == 1",
        "$.succeeded.Pay == 0",
        "$.calls.Cancel == 1",
        "$.entered.Done == 0",
        '"NotPaid" in $.path',
        '$.path[0] == "Book"',
        "$.tookSeconds == 2",
        "$.input.a == 1",
        "!$.output.b",
    ],
)
def test_what_conditions_read(messages, condition):
    mocks = "{Pay: {error: Declined, after: 2s}}"
    assert messages(f"status: Failed, always: ['{condition}']", mocks, given="{a: 1}") == []


def test_conditions_of_some_runs(messages):
    claim = '{if: $.calls.Pay == 0, then: $.status == "Failed"}'
    assert messages(f"always: [{claim}]") == []
    expect = """status: Any, always: [{if: '$.calls.Pay == 1', then: '$.status == "Succeeded"'}]"""
    assert messages(expect) == []
    assert messages(expect, "{Pay: {error: E}}") == [
        '`$.status == "Succeeded"` is not true, but `$.calls.Pay == 1` is: `$.status` is "Failed"'
    ]


def test_a_broken_condition_shows_what_it_has_read(messages):
    claim = "$.calls.Pay == 2 && $.output.none == 1"
    assert messages(f"always: ['{claim}']") == [
        f"`{claim}` is not true: `$.calls.Pay` is 1, `$.output.none` is not there"
    ]


def test_conditions_count_iterations_by_path_and_by_name(messages):
    conditions = """'$.calls.Book == 2', '$.calls["Trips[].Book"] == 2', '$.calls["Trips[1].Book"] == 1'"""
    assert messages(f"always: [{conditions}]", steps=LOOP, given="{trips: [a, b]}") == []


def test_a_broken_property_shows_its_line_and_the_step(run_tests):
    tests = "functions: {book: {}, pay: {error: E}}\ntests:\n  - name: a\n    expect:\n      status: Any\n"
    (outcome,) = run_tests(SAGA, f"{tests}      compensated:\n        Book: Cancel\n")
    (failure,) = outcome.failures
    assert (failure.place.span.line, failure.definition.span.line) == (8, 5)
