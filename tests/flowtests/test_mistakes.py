"""Every mistake in a test file has a place, and a hint where there is one."""

import pytest

from flowserver.base.limits import Limits

STEPS = """
  - type: task
    name: Charge
    resourceArn: acs:fc:::services/pay/functions/charge
  - type: choice
    name: Check
    choices: [{condition: $.ok == true, steps: [{type: pass, name: Deep}]}]
"""


MISTAKES = {
    "tests: [{name: a, steps: {Check: {}}}]": "2:27 bad-value: the step `Check` calls nothing",
    "tests: [{name: a, callbacks: {Charge: {never: true}}}]": (
        "2:31 bad-value: the step `Charge` does not wait for a callback"
    ),
    "tests: [{name: a, steps: {Charge: {real: flow.yaml}}}]": "2:27 bad-value: the step `Charge` starts no sub-flow",
    "tests: [{name: a, expect: {error: E, output: {}}}]": (
        "2:38 exactly-one: an execution that does not succeed has no output; check `error` and `cause`"
    ),
    "test: []": ("2:1 unknown-attribute: `test` is not an attribute of a flow test file; did you mean `tests`?"),
    "tests: []": "2:8 empty-list: `tests` needs at least one test",
    "tests: [{expect: {}}]": "2:10 missing-attribute: a test needs `name`",
    "tests: [{name: a}, {name: a}]": "2:27 duplicate-name: the test `a` is in line 2 already",
    "tests: [{name: a, steps: {Chrage: {}}}]": (
        "2:27 unknown-step: the flow has no step `Chrage`; did you mean `Charge`?"
    ),
    "tests: [{name: a, functions: {chrage: {}}}]": (
        "2:31 unknown-resource: no step of the flow calls `chrage`; there is `services/pay/functions/charge`"
    ),
    "tests: [{name: a, functions: {pay/chrage: {}}}]": (
        "2:31 unknown-resource: no step of the flow calls `pay/chrage`; did you mean `pay/charge`?"
    ),
    "tests: [{name: a, expect: {path: [Deep]}}]": (
        "2:35 unknown-step: the flow has no step `Deep`; its path is `Check.Deep`"
    ),
    "tests: [{name: a, expect: {never: [Ship]}}]": "2:36 unknown-step: the flow has no step `Ship`",
    "tests: [{name: a, expect: {calls: {ship: 1}}}]": (
        "2:36 unknown-resource: the flow has no step `ship`, and none that calls it; there is "
        "`services/pay/functions/charge`"
    ),
    "tests: [{name: a, expect: {calls: {Chrage: 1}}}]": (
        "2:36 unknown-resource: the flow has no step `Chrage`, and none that calls it; did you mean `Charge`?"
    ),
    "tests: [{name: a, expect: {status: Suceeded}}]": (
        "2:36 bad-value: `status` must be one of Succeeded, Failed, TimedOut, Any; did you mean `Succeeded`?"
    ),
    "tests: [{name: a, steps: {Charge: {crash: soon}}}]": "2:43 bad-value: `crash` must be before or after",
    "tests: [{name: a, steps: {Charge: {crash: after, always: true}}}]": (
        "2:36 exactly-one: a node that always crashes never gets an answer; leave out `always`"
    ),
    "tests: [{name: a, expect: {atMostOnce: [Ship]}}]": (
        "2:41 unknown-resource: the flow has no step `Ship`, and none that calls it; there is "
        "`services/pay/functions/charge`"
    ),
    "tests: [{name: a, expect: {atMostOnce: []}}]": "2:40 empty-list: `atMostOnce` needs at least one entry",
    "tests: [{name: a, expect: {compensated: {Charge: Refund}}}]": ("2:42 unknown-step: the flow has no step `Refund`"),
    "tests: [{name: a, expect: {compensated: {Charge: 3}}}]": (
        "2:50 wrong-type: what undoes a step is the name of a step, or a mapping with `by`"
    ),
    "tests: [{name: a, expect: {always: ['$.stauts == 1']}}]": (
        "2:37 bad-value: `$.stauts` reads nothing: a run has status, error, cause, input, output, path, entered, "
        "succeeded, calls, tookSeconds; did you mean `status`?"
    ),
    "tests: [{name: a, expect: {always: ['$.status =']}}]": (
        "2:47 bad-condition: `=` is not an operator; did you mean `==`?"
    ),
    "tests: [{name: a, expect: {always: [3]}}]": "2:37 wrong-type: a condition is a text; write it in quotes",
    "tests: [{name: a, expect: {always: ['!($.calls.Chrage > 1)']}}]": (
        "2:37 unknown-step: the flow has no step `Chrage`; did you mean `Charge`?"
    ),
    "sim: {always: [{if: '$.succeeded.Chareg == 1', then: '$.status == \"Succeeded\"'}]}": (
        "2:16 unknown-step: the flow has no step `Chareg`; did you mean `Charge`?"
    ),
    "tests: [{name: a, expect: {compensated: {Charge: {by: Check, when: '$.entered.Depe == 0'}}}}]": (
        "2:42 unknown-step: the flow has no step `Depe`; did you mean `Deep`?"
    ),
    """tests: [{name: a, expect: {always: ['$.calls["pay/charge"] == 1']}}]""": (
        "2:37 unknown-step: the flow has no step `pay/charge`; calls count by step: `Charge` makes such calls"
    ),
    """tests: [{name: a, expect: {always: ['!("Deep" in $.path)']}}]""": (
        "2:37 unknown-step: the flow has no step `Deep`; its path is `Check.Deep`"
    ),
    """tests: [{name: a, expect: {always: ['$.entered["Chek.Deep"] == 0']}}]""": (
        "2:37 unknown-step: the flow has no step `Chek.Deep`; did you mean `Check.Deep`?"
    ),
    "tests: [{name: a, expect: {always: ['$.entered.Check.Deep == 0']}}]": (
        "2:37 bad-value: `$.entered.Check.Deep` reads nothing: `entered` is a number for each step; "
        'write a path in brackets: `["pack[].label"]`'
    ),
    "tests: [{name: a, expect: {took: soon}}]": (
        "2:34 bad-value: `soon` is no bound of a duration; write a comparison with a duration, such as `< 3d`"
    ),
    "tests: [{name: a, startedAt: today}]": (
        "2:30 bad-value: `today` is no instant; write an RFC 3339 instant, such as 2026-01-02T03:04:05Z"
    ),
    "tests: [{name: a, steps: {Charge: {after: 3}}}]": (
        "2:43 wrong-type: `after` must be a text; for example `after: 3s`"
    ),
    "tests: [{name: a, steps: {Charge: {after: soon}}}]": (
        "2:43 bad-value: `soon` is no duration; write a duration, such as 250ms, 3s, 1h30m or 2d"
    ),
    "tests: [{name: a, steps: {Charge: [{always: true}, {error: E}]}}]": (
        "2:37 bad-value: the replies after this one are never used: it answers all further calls; make it "
        "the last of the list"
    ),
    "tests: [{name: a, steps: {Charge: {return: {}, error: E}}}]": (
        "2:36 exactly-one: only one of `return`, `error` and `never` can be given"
    ),
    "tests: [{name: a, callbacks: {Charge: {after: 1s}}}]": (
        "2:40 exactly-one: a report needs `succeed`, `fail` or `never`"
    ),
    "tests: [{name: a, steps: {Charge: {times: 0}}}]": "2:43 bad-value: `times` must be from 1 to 1000000",
    "tests: [{name: a, steps: {Charge: []}}]": (
        "2:35 empty-list: this list needs a reply; for a call that gets no answer write `{never: true}`"
    ),
    "tests: [{name: a": (
        "2:17 not-yaml: this is not YAML: did not find expected ',' or '}', while parsing a flow mapping; "
        "`{` in line 2, column 9 is not closed: add `}]`"
    ),
    "name: a\nname: b\ntests: [{name: a}]": "3:1 duplicate-key: the key `name` is in line 2 already",
}


@pytest.mark.parametrize(("text", "expected"), MISTAKES.items())
def test_mistakes_have_places(mistakes, text, expected):
    assert expected in mistakes(STEPS, text)


def test_a_flow_that_cannot_be_used_is_a_mistake(mistakes, tmp_path):
    (found,) = mistakes("  - {type: pass}\n", "tests: [{name: a}]")
    assert found.startswith("1:7 unusable-flow: ")
    assert found.endswith("line 4, column 6: a pass step needs `name`; `flowserver validate` shows all of them")
    found = mistakes(STEPS, "flows: {child: {real: other.yaml}}\ntests: [{name: a}]")
    assert found[1].startswith("2:23 unusable-flow: `other.yaml`: No such file or directory; ")


def test_the_hint_of_an_unknown_resource_has_the_names_that_there_are(mistakes):
    steps = "".join(
        f"  - {{type: task, name: s{n}, resourceArn: 'acs:fc:::services/pay/functions/work{n}'}}\n" for n in range(7)
    )
    known = ", ".join(f"`services/pay/functions/work{n}`" for n in range(5))
    (found,) = mistakes(steps, "tests: [{name: a, functions: {ship: {}}}]")
    assert found == f"2:31 unknown-resource: no step of the flow calls `ship`; there are {known} and 2 more"


def test_files_are_bounded(run_tests, mistakes):
    large = "tests: [{name: a}]\n#" + "x" * Limits().flow_test_bytes_max
    assert mistakes(STEPS, large)[0].startswith("1:1 definition-too-large: a file has at most 1048576 bytes")
    many = "tests:\n" + "".join(f"  - name: t{number}\n" for number in range(Limits().flow_tests_max + 1))
    assert mistakes(STEPS, many) == ["3:3 bad-value: a file has at most 1000 tests"]
