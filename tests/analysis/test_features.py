"""Random flows have what real flows have. `python -m tests.analysis features` lists what real flows alone have."""

from tests.analysis.features import features_of_random_flows, features_of_real_flows

FLOWS = 350
REAL_MIN = 4
"""Features of so many real flows are in some random flow. Rarer ones are rarer there, too."""


def test_random_flows_have_what_real_flows_have() -> None:
    real, made = features_of_real_flows(), features_of_random_flows(range(FLOWS))
    usual = {feature for feature, count in real.items() if count >= REAL_MIN}
    assert len(usual) > 80
    assert usual - made.keys() == set()
