"""What an edited file keeps of its earlier texts."""

import gc
import weakref

import pytest

STEPS = "version: v1\ntype: flow\nsteps:\n"


@pytest.mark.parametrize("readable_every", [1, 2, 1000])
def test_earlier_texts_are_forgotten(folder, readable_every):
    earlier = []
    for number in range(20):
        end = ": :" if number % readable_every else ""
        file = folder.put("flow.yaml", f"{STEPS}- {{type: pass, name: a{number}}}\n{end}")
        assert file.outline.by_path
        earlier.append(weakref.ref(file))
    gc.collect()
    assert sum(each() is not None for each in earlier) <= 2


def test_while_a_text_is_broken_the_last_that_could_be_read_counts(folder):
    folder.put("flow.yaml", f"{STEPS}- {{type: pass, name: one}}\n")
    for end in (": :", ": : :", ": : : :"):
        file = folder.put("flow.yaml", f"{STEPS}- {{type: pass, name: one}}\n{end}")
        assert [*file.outline.by_name] == ["one"]
