"""A test file for one definition that is given as text, as a server gets both: there are no other files."""

from pathlib import Path
from typing import Final

from flowserver.base.json_values import JsonObject
from flowserver.base.limits import Limits
from flowserver.flowtests.cases import Source, TestFile
from flowserver.flowtests.reading import read_test_file
from flowserver.flowtests.real_calls import Callee, NotAvailable
from flowserver.flowtests.schemas import Schema
from flowserver.language.check_cost import Work
from flowserver.language.graph import Flow

_NO_FILES: Final = "`real` is not available on a server, which has no files"
_NO_CALLS: Final = "`real` is not available on a server, which makes no calls for tests"


class _Given:
    def __init__(self, text: str, flow: Flow) -> None:
        self._text = text
        self._flow = flow

    def of_flow(self, file: Path) -> Source:
        return Source(file, self._text, self._flow)

    def of_sub_flow(self, _: Path) -> Source:
        raise NotAvailable(_NO_FILES, "mock the sub-flow, for example `{return: {}}`, or run `flowserver test`")

    def of_callee(self, _name: str, _folder: Path) -> Callee:
        raise NotAvailable(_NO_CALLS, "mock the call, for example `{return: {}}`, or run `flowserver test`")

    def of_schema(self, _: JsonObject) -> Schema:
        raise NotAvailable("a server does not apply JSON Schemas", "use `outputIncludes`, or run `flowserver test`")


def load_with(definition: str, flow: Flow, tests: str, limits: Limits, work: Work) -> TestFile:
    """Check the text of a test file, which is for this definition: the file that its `flow` names is not read.

    Raises DefinitionRejected, which has the mistakes of the test file.
    """
    return read_test_file(Path("tests.flowtest.yaml"), tests, limits, _Given(definition, flow), work)
