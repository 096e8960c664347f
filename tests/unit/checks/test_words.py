"""Counting words without making them."""

from __future__ import annotations

from hypothesis import example, given, strategies as st

from checks.words import word_counts

SPACES = "".join(chr(point) for point in range(0x110000) if chr(point).isspace())
LETTERS = st.text(alphabet=st.one_of(st.sampled_from(SPACES + "ab\u200b\u00e9"), st.characters()))


@given(st.lists(LETTERS, min_size=1, max_size=6))
@example([SPACES, f"a{SPACES}b", "", "\ud800 x"])
def test_words_are_counted_as_splitting_would(texts: list[str]) -> None:
    assert word_counts(texts).tolist() == [len(text.split()) for text in texts]
