"""What a task step calls, also in a definition that has errors elsewhere."""

from flowserver.editing.grammar import attribute_of
from flowserver.language.graph import Target
from flowserver.language.nodes import MapNode, ScalarNode
from flowserver.language.resources import ResourceError, expand_ref, parse_action, parse_resource
from flowserver.language.targets import Parameters, known_parameters


def target_of(step: MapNode) -> Target | None:
    """The target; None if there is none that can be read."""
    resource, action = attribute_of(step, "resourceArn"), attribute_of(step, "action")
    try:
        if isinstance(resource, ScalarNode):
            return parse_resource(expand_ref(resource.text) if resource.is_ref else resource.text)
        if isinstance(action, ScalarNode):
            return parse_action(action.text)
    except ResourceError:
        pass
    return None


def parameters_of(step: MapNode) -> Parameters:
    """The parameters that its call takes; empty if it takes any."""
    target = target_of(step)
    return {} if target is None else known_parameters(target) or {}
