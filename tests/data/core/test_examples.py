"""Ragged columns hold their rows, and pad them with zeros."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.text.special_tokens import SpecialTokens


@given(lengths=st.lists(st.integers(0, 6), max_size=8), channels=st.integers(0, 3), data=st.data())
def test_rows_come_back_as_they_were(lengths: list[int], channels: int, data: st.DataObject) -> None:
    shapes = [(length, channels) if channels else (length,) for length in lengths]
    rows = [np.random.default_rng(i).random(shape) + 1 for i, shape in enumerate(shapes)]
    ragged = RaggedArray.from_rows(iter(rows))
    assert len(ragged) == len(rows)
    assert ragged.lengths.tolist() == lengths
    for i, row in enumerate(rows):
        assert np.array_equal(ragged[i], row)
    if not rows:
        return
    chosen = np.array(data.draw(st.lists(st.sampled_from(range(len(rows))), min_size=1)))
    padded, found = ragged.padded(chosen)
    assert found.tolist() == [lengths[i] for i in chosen]
    assert padded.shape[:2] == (len(chosen), max(found))
    for i, row in zip(chosen, padded, strict=True):
        assert np.array_equal(row[: lengths[i]], rows[i])
        assert not row[lengths[i] :].any()


def test_rows_are_counted_from_the_end_too() -> None:
    ragged = RaggedArray.from_rows([np.array([1, 2]), np.array([3])])
    assert ragged[-1].tolist() == [3]
    with pytest.raises(IndexError):
        ragged[2]


def test_numbers_keep_their_kind() -> None:
    ragged = RaggedArray.from_rows([np.array([1, 65535], np.uint16), np.array([], np.uint16)])
    assert ragged.padded(np.array([1, 0]))[0].dtype == np.uint16


def test_columns_have_equally_many_rows() -> None:
    source = RaggedArray.from_rows([np.array([1]), np.array([2, 3])])
    assert len(Examples({"source": source, "label": np.array([0, 1])})) == 2
    with pytest.raises(ValueError, match="'label': 3"):
        Examples({"source": source, "label": np.array([0, 1, 2])})


def test_marks_stand_behind_the_vocabulary() -> None:
    marks = SpecialTokens(10)
    assert [marks.bos, marks.eos, marks.mask, marks.vocab_size] == [10, 11, 12, 13]
