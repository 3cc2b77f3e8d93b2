"""A test file for one definition that is given as text, as a server gets both: there are no other files."""

from pathlib import Path

from flowserver.base.limits import Limits
from flowserver.flowtests.cases import Source, TestFile
from flowserver.flowtests.reading import NotAvailable, read_test_file
from flowserver.language.check_cost import Work
from flowserver.language.graph import Flow


class _Given:
    def __init__(self, text: str, flow: Flow) -> None:
        self._text = text
        self._flow = flow

    def of_flow(self, file: Path) -> Source:
        return Source(file, self._text, self._flow)

    def of_sub_flow(self, _: Path) -> Source:
        hint = "mock the sub-flow, for example `{return: {}}`, or run `flowserver test`"
        raise NotAvailable("`real` is not available on a server, which has no files", hint)


def load_with(definition: str, flow: Flow, tests: str, limits: Limits, work: Work) -> TestFile:
    """Check the text of a test file, which is for this definition: the file that its `flow` names is not read.

    Raises DefinitionRejected, which has the mistakes of the test file.
    """
    return read_test_file(Path("tests.flowtest.yaml"), tests, limits, _Given(definition, flow), work)
