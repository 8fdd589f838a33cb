"""The order of classes: their names', or that of a run whose classes they are."""

from foveal.data.classes import class_names


def test_known_classes_keep_their_numbers() -> None:
    labels = ["b", "a", "b"]
    assert class_names("data", labels, "all") == ("a", "b")
    assert class_names("data", labels, "all", known=("b", "a")) == ("b", "a")
    assert class_names("data", labels, "all", known=("b", "a", "c")) == ("a", "b")
