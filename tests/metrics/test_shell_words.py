"""A shell takes words for what they were, however they are written."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kernelscope.metrics.shell_words import shell_path, shell_word, split_words

NASTY = ("a b", "it's", 'say "hi"', "$HOME", "a\nb", "\x1b[2J", "\\", "$'x'", "b\udcff.sqlite", "")

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@settings(max_examples=30, deadline=None)
@given(words=st.lists(TEXTS | st.sampled_from(NASTY), min_size=1, max_size=20))
def test_bash_reads_what_was_meant(words: list[str]) -> None:
    command = f"printf '%s\\0' {' '.join(map(shell_word, words))}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)

    assert done.stdout.split(b"\0")[:-1] == list(map(os.fsencode, words))


@given(words=st.lists(TEXTS | st.sampled_from(NASTY), max_size=9))
def test_words_are_printable_and_stay_apart(words: list[str]) -> None:
    written = list(map(shell_word, words))

    assert all(each.isprintable() for each in written)
    assert split_words(" ".join(written)) == written


def test_a_path_is_no_option() -> None:
    assert shlex.split(shell_path("-rf x")) == ["./-rf x"]
    assert shell_path("runs/a.sqlite") == "runs/a.sqlite"
