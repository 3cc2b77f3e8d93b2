"""Short ways to edit files in tests: `¦` is the cursor."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flowserver.base.limits import Limits
from flowserver.editing.files import Definition, EditedFile, FlowTest
from flowserver.flowtests.file_names import SUFFIX

LIMITS = Limits()
CURSOR = "¦"
FOLDER = Path("/flows")


@dataclass
class Folder:
    """Files in one folder, all open."""

    files: dict[Path, EditedFile] = field(default_factory=dict)

    def put(self, name: str, text: str) -> EditedFile:
        """Open a file, or change its text."""
        path = FOLDER / name
        before = self.files.get(path)
        if name.endswith(SUFFIX):
            self.files[path] = FlowTest(text, LIMITS, before if isinstance(before, FlowTest) else None)
        else:
            self.files[path] = Definition(text, LIMITS, before if isinstance(before, Definition) else None)
        return self.files[path]

    def at_cursor(self, name: str, text: str) -> tuple[EditedFile, int]:
        """Open a file whose text has a cursor; returns it with the cursor's offset."""
        assert text.count(CURSOR) == 1, text
        return self.put(name, text.replace(CURSOR, "")), text.index(CURSOR)

    def definition(self, file: Path) -> Definition | None:
        found = self.files.get(file)
        return found if isinstance(found, Definition) else None

    def flow_tests_of(self, file: Path) -> Iterable[tuple[Path, FlowTest]]:
        return list(self._flow_tests_of(file))

    def _flow_tests_of(self, file: Path) -> Iterator[tuple[Path, FlowTest]]:
        for path, test in self.files.items():
            if isinstance(test, FlowTest) and any(path.parent / name == file for name in test.definitions):
                yield path, test


@pytest.fixture
def folder() -> Folder:
    return Folder()


ORDER = """\
version: v1
type: flow
steps:
  - type: task
    name: charge
    resourceArn: acs:fc:::services/shop/functions/charge
    outputMappings: [{target: receipt, source: $local.id}]
    errorMappings: [{target: why, source: $local.error}]
    catch:
      - {errors: [CardDeclined], goto: mail}
  - type: foreach
    name: pack
    iterationMapping: {collection: $.items, item: it}
    steps:
      - {type: task, name: label, resourceArn: 'acs:fc:::functions/print', serviceParams: {InvocationType: Async}}
  - type: choice
    name: check
    choices:
      - condition: $.why == ""
        steps: [{type: pass, name: label}]
        goto: mail
    default: {goto: charge}
  - type: task
    name: mail
    resourceArn: acs:mns:::/queues/mails/messages
    inputMappings: [{target: receipt, source: $local.receipt}]
    serviceParams: {MessageBody: $}
"""
TESTS = """\
flow: order.yaml
steps: {mail: {}}
tests:
  - name: declined
    functions: {charge: {error: CardDeclined}}
    expect:
      path: [charge, 'pack[].label', "check.label", mail]
      never: [label, pack]
      calls: {charge: 1, 'pack[0].label': 2, functions/print: 2}
"""
