"""Which parts of a definition tests reach."""

from flowserver.base.limits import Limits
from flowserver.flowtests.coverage import Coverage, percent_of
from flowserver.flowtests.coverage_points import Kind
from flowserver.flowtests.lcov import lcov
from flowserver.flowtests.loading import Loader
from flowserver.flowtests.outcomes import Rules, run_case

STEPS = """version: v1
type: flow
outputMappings:
  - {target: out, source: $local.lost}
steps:
  - type: foreach
    name: each
    iterationMapping: {collection: $.items, item: item}
    steps:
      - type: choice
        name: check
        choices:
          - condition: $.item == 1
            steps: [{type: pass, name: same, outputMappings: [{target: a, source: $input.none}]}]
          - condition: $.item == 2
            steps:
              - type: pass
                name: same
  - type: parallel
    name: both
    branches:
      - steps:
          - type: task
            name: call
            resourceArn: acs:fc:::services/s/functions/f
            retry:
              - {errors: [Busy]}
              - {errors: [FnF.ALL], maxAttempts: 1}
            catch:
              - {errors: [Busy], goto: done}
              - {errors: [FnF.ALL], goto: done}
            errorMappings:
              - {target: e, source: $local.error}
              - {target: f, source: $local.other}
          - {type: pass, name: done}
"""


def measured(tmp_path, *tests):
    (tmp_path / "flow.yaml").write_text(STEPS)
    limits = Limits()
    text = "flow: flow.yaml\ninput: {items: []}\nsteps: {call: {return: {}}}\ntests:\n" + "".join(
        f"  - {test}\n" for test in tests
    )
    loaded = Loader(limits).load(tmp_path / "flow.flowtest.yaml", text)
    coverage = Coverage(limits)
    for source in loaded.sources:
        coverage.add(source)
    for case in loaded.cases:
        outcome = run_case(loaded, case, Rules(limits), coverage.observe)
        assert outcome.passed, outcome.failures
    (file,) = coverage.files()
    return file


def missed(file):
    return [(point.title, point.span.line) for point, count in file.counts if not count]


def test_steps_and_options_are_counted_where_they_are(tmp_path):
    file = measured(tmp_path, "{name: a, input: {items: [2, 2, 2]}}")
    assert missed(file) == [
        ("the way past step check without an option", 10),
        ("option 1 of step check", 13),
        ("step same", 14),
        ("retry policy 1 of step call", 27),
        ("retry policy 2 of step call", 28),
        ("catch rule 1 of step call", 30),
        ("catch rule 2 of step call", 31),
    ]
    assert [(point.title, count) for point, count in file.counts if point.title == "step same"] == [
        ("step same", 0),
        ("step same", 3),
    ]
    assert file.reached(Kind.OPTION) == (1, 3)


def test_everything_can_be_reached(tmp_path):
    file = measured(
        tmp_path,
        "{name: a, input: {items: [1, 2, 3]}, steps: {call: [{error: Busy}, {return: {}}]}}",
        "{name: b, steps: {call: {error: Busy, times: 4}}}",
        "{name: c, steps: {call: {error: Other, times: 2}}}",
    )
    assert missed(file) == []
    assert percent_of([file]) == 100


def test_mappings_that_give_null_are_shown(tmp_path):
    file = measured(tmp_path, "{name: a, input: {items: [1]}, steps: {call: {error: Other, times: 2}}}")
    assert [(span.line, text) for span, text in file.nulls] == [
        (4, "outputMappings of the flow: the source of out was not found and gave null"),
        (14, "outputMappings of step same: the source of a was not found and gave null"),
        (34, "errorMappings of step call: the source of f was not found and gave null"),
    ]


def test_lcov_has_lines_for_steps_and_branches_for_the_rest(tmp_path):
    file = measured(tmp_path, "{name: a, input: {items: [1]}, steps: {call: [{error: Busy}, {return: {}}]}}")
    lines = lcov([file]).splitlines()
    assert lines[1] == f"SF:{tmp_path / 'flow.yaml'}"
    assert {"DA:6,1", "DA:10,1", "DA:17,0", "BRDA:13,0,1,1", "BRDA:27,1,0,1", "BRDA:28,1,1,0"} <= set(lines)
    assert lines[-1] == "end_of_record"
    assert ("BRF:7" in lines, "BRH:2" in lines) == (True, True)


def test_mappings_that_select_too_much_are_looked_at_as_far_as_the_machine_does(tmp_path):
    """So a request's tests cannot keep a server busy with mappings that fail at once in the machine."""
    flow = "version: v1\ntype: flow\nsteps:\n  - type: pass\n    name: p\n    inputMappings:\n"
    sources = [*["$input.a[*]"] * 5, "$input.none"]
    lines = "".join(f"      - {{target: t{number}, source: '{source}'}}\n" for number, source in enumerate(sources))
    (tmp_path / "flow.yaml").write_text(flow + lines)
    limits = Limits(step_data_bytes_max=4_096)
    text = f"flow: flow.yaml\ninput: {{a: {[1] * 500}}}\ntests: [{{name: t, expect: {{error: FnF.RuntimeError}}}}]\n"
    loaded = Loader(limits).load(tmp_path / "flow.flowtest.yaml", text)
    coverage = Coverage(limits)
    coverage.add(loaded.source)
    outcome = run_case(loaded, loaded.cases[0], Rules(limits), coverage.observe)
    assert outcome.passed, outcome.failures
    (file,) = coverage.files()
    assert file.nulls == ()
