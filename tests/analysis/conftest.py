"""test_corpus.py runs the flow tests of these folders. Those of the bugs fail: that is how they find the bugs."""

collect_ignore_glob = ["behavioural_bugs/*", "correct_flows/*"]
