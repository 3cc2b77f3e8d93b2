"""The outline of a file."""

from flowserver.editing.symbols import Symbol, symbols_of
from tests.editing.conftest import ORDER, TESTS, Folder


def told(symbols: tuple[Symbol, ...] | list[Symbol], text: str, depth: int = 0) -> list[str]:
    lines = []
    for symbol in symbols:
        assert symbol.extent.start <= symbol.name_extent.start <= symbol.name_extent.end <= symbol.extent.end
        lines.append("  " * depth + f"{symbol.name}: {symbol.kind} {symbol.detail}".rstrip())
        lines += told(symbol.inner, text, depth + 1)
    return lines


def test_steps_within_steps(folder: Folder):
    assert told(symbols_of(folder.put("order.yaml", ORDER)), ORDER) == [
        "charge: task task services/shop/functions/charge",
        "pack: foreach foreach",
        "  label: task task functions/print",
        "check: choice choice",
        '  $.why == "": group',
        "    label: pass pass",
        "mail: task task /queues/mails/messages",
    ]


def test_an_unfinished_definition(folder: Folder):
    text = "version: v1\nsteps:\n  - type: parallel\n    branches: [{steps: [{}]}, {steps: [{name: a}]}]\n  - 7\n"
    assert told(symbols_of(folder.put("a.yaml", text)), text) == [
        "(no name): parallel parallel",
        "  branch 0: group",
        "    (no name):",
        "  branch 1: group",
        "    a:",
    ]
    assert symbols_of(folder.put("b.yaml", "[")) == []


def test_tests(folder: Folder):
    assert told(symbols_of(folder.put("order.flowtest.yaml", TESTS)), TESTS) == ["declined: test"]
