"""JUnit reports, as CI servers read them."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from flowserver.base.durations import shown_duration
from flowserver.base.xml_characters import fit_for_xml
from flowserver.flowtests.findings import render_finding
from flowserver.flowtests.outcomes import Outcome
from flowserver.flowtests.property_names import OF_EVERY_FLOW
from flowserver.flowtests.simulating.simulation import Failure, Simulation
from flowserver.flowtests.simulation_settings import SimulationSettings
from flowserver.language.diagnostics import Severity


def junit_xml(outcomes: Iterable[Outcome], rejected: Mapping[str, str]) -> str:
    """The report: a suite for each file; `rejected` files have one test, whose error says what is wrong with them."""
    root = Element("testsuites")
    for file, group in groupby(outcomes, key=lambda outcome: str(outcome.file.file)):
        found = list(group)
        failures = sum(not outcome.passed for outcome in found)
        suite = _suite(root, file, len(found), failures, 0, sum(outcome.seconds for outcome in found))
        for outcome in found:
            _add(suite, outcome)
    _add_rejected(root, rejected)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def simulations_xml(simulations: Iterable[Simulation], rejected: Mapping[str, str]) -> str:
    """The report of simulations: a suite for each file, a test for each property; warnings are no failures."""
    root = Element("testsuites")
    for each in simulations:
        file = str(each.file.file)
        properties = (each.file.simulation or SimulationSettings()).properties
        names = dict.fromkeys((*OF_EVERY_FLOW, *(one.name for one in properties)))
        suite = _suite(root, file, len(names), len({failure.property for failure in each.errors}), 0, 0)
        for name in names:
            case = SubElement(suite, "testcase", classname=fit_for_xml(file), name=name)
            for failure in each.failures:
                if failure.property == name and failure.severity is Severity.ERROR:
                    SubElement(case, "failure", message=fit_for_xml(failure.message)).text = fit_for_xml(_told(failure))
                elif failure.property == name:
                    SubElement(case, "system-out").text = fit_for_xml(f"{failure.message}\n{_told(failure)}")
    _add_rejected(root, rejected)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _told(failure: Failure) -> str:
    """The story of a failure."""
    return "\n".join(f"{shown_duration(each.after_ms)} {each.text}" for each in failure.story)


def _add_rejected(root: Element, rejected: Mapping[str, str]) -> None:
    for file, mistakes in rejected.items():
        case = SubElement(_suite(root, file, 1, 0, 1, 0), "testcase", classname=fit_for_xml(file), name="the file")
        SubElement(case, "error", message="the file has mistakes").text = fit_for_xml(mistakes)


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
