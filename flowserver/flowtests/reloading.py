"""What a node finds after a crash: an execution as its last commit left it."""

from dataclasses import replace

from flowserver.machine.state import Execution, Scope


def reloaded(execution: Execution) -> Execution:
    """The execution between two turns as it is read back: what was only remembered is gone.

    Its documents are shared: nothing edits them in place.
    """
    scopes = {scope_id: _reloaded(scope) for scope_id, scope in execution.scopes.items()}
    return replace(execution, scopes=scopes, kept={})


def _reloaded(scope: Scope) -> Scope:
    return replace(scope, retries=dict(scope.retries), finished=dict(scope.finished))
