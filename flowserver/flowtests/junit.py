"""JUnit reports, as CI servers read them."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from flowserver.base.xml_characters import fit_for_xml
from flowserver.flowtests.findings import render_finding
from flowserver.flowtests.outcomes import Outcome


def junit_xml(outcomes: Iterable[Outcome], rejected: Mapping[str, str]) -> str:
    """The report: a suite for each file; `rejected` files have one test, whose error says what is wrong with them."""
    root = Element("testsuites")
    for file, group in groupby(outcomes, key=lambda outcome: str(outcome.file.file)):
        found = list(group)
        failures = sum(not outcome.passed for outcome in found)
        suite = _suite(root, file, len(found), failures, 0, sum(outcome.seconds for outcome in found))
        for outcome in found:
            _add(suite, outcome)
    for file, mistakes in rejected.items():
        case = SubElement(_suite(root, file, 1, 0, 1, 0), "testcase", classname=fit_for_xml(file), name="the file")
        SubElement(case, "error", message="the file has mistakes").text = fit_for_xml(mistakes)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: Element, file: str, tests: int, failures: int, errors: int, seconds: float) -> Element:
    counts = {"tests": str(tests), "failures": str(failures), "errors": str(errors), "skipped": "0"}
    return SubElement(root, "testsuite", {"name": fit_for_xml(file), **counts, "time": f"{seconds:.6f}"})


def _add(suite: Element, outcome: Outcome) -> None:
    file = fit_for_xml(str(outcome.file.file))
    case = SubElement(
        suite,
        "testcase",
        {
            "classname": file,
            "name": fit_for_xml(outcome.case.name),
            "file": file,
            "line": str(outcome.case.span.line),
            "time": f"{outcome.seconds:.6f}",
        },
    )
    for finding in outcome.failures:
        SubElement(case, "failure", message=fit_for_xml(finding.message)).text = fit_for_xml(render_finding(finding))
    if outcome.warnings:
        warnings = "\n".join(render_finding(each, "warning") for each in outcome.warnings)
        SubElement(case, "system-out").text = fit_for_xml(warnings)
