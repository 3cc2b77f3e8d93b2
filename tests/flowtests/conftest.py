"""Flow tests are run as a user runs them: from files, by the loader."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flowserver.base.limits import Limits
from flowserver.flowtests.loading import Loader
from flowserver.flowtests.outcomes import Outcome, Rules, run_case
from flowserver.language.diagnostics import DefinitionRejected

Steps = str
RunTests = Callable[..., list[Outcome]]


@pytest.fixture
def run_tests(tmp_path: Path) -> RunTests:
    """Run the tests of a text over a definition with these steps; `others` are files beside them."""

    def run(steps: str, tests: str, *, limits: Limits | None = None, **others: str) -> list[Outcome]:
        limits = limits or Limits()
        for name, text in {"flow": steps, **others}.items():
            header = "" if text.startswith("version") else "version: v1\ntype: flow\nsteps:\n"
            (tmp_path / f"{name}.yaml").write_text(header + text)
        text = f"flow: flow.yaml\n{tests}"
        loaded = Loader(limits).load(tmp_path / "flow.flowtest.yaml", text)
        return [run_case(loaded, case, Rules(limits)) for case in loaded.cases]

    return run


@pytest.fixture
def mistakes(run_tests: RunTests) -> Callable[..., list[str]]:
    """The mistakes of a file as `LINE:COLUMN id: message; hint`."""

    def found(steps: str, tests: str, **others: str) -> list[str]:
        with pytest.raises(DefinitionRejected) as rejected:
            run_tests(steps, tests, **others)
        return [
            f"{each.span.line}:{each.span.column} {each.id}: {each.message}" + (f"; {each.hint}" if each.hint else "")
            for each in rejected.value.diagnostics
        ]

    return found
