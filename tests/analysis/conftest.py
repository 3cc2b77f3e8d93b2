"""The tests in the bugs' folder fail: that is how they find the bugs. test_corpus.py runs them."""

collect_ignore_glob = ["behavioural_bugs/*"]
