"""The four answers to two questions, and when measured figures refute one."""

from foveal.studies.compare_finetuning.advice import (
    ADVICE,
    MANY_IMAGES_PER_CLASS,
    MeasuredAccuracy,
    advise,
    verdict,
)


def test_two_by_two() -> None:
    """Alike: at most half of the errors by pixels are left."""
    found = {
        (much, alike): advise(
            MANY_IMAGES_PER_CLASS if much else MANY_IMAGES_PER_CLASS - 0.1, 0.60 if alike else 0.59, 0.2
        )
        for much in (False, True)
        for alike in (False, True)
    }
    for (much, alike), advice in found.items():
        assert (advice.many_images, advice.features_transfer) == (much, alike)
        assert (advice.strategy, advice.text) == ADVICE[much, alike]
    assert [found[key].strategy for key in sorted(found)] == ["head", "head", "all", "last-block"]


def test_what_the_figures_say() -> None:
    head, over, apart = (
        MeasuredAccuracy(0.7, 0.65, 0.75),
        MeasuredAccuracy(0.74, 0.7, 0.78),
        MeasuredAccuracy(0.8, 0.76, 0.84),
    )
    assert verdict("head", {"head": head}) == "head is the best here, as advised"
    assert verdict("head", {"head": head, "all": over}).endswith("the intervals overlap")
    assert verdict("head", {"head": head, "all": apart}).endswith("the intervals do not overlap")
    assert verdict("all", {"head": head, "all": apart}).endswith("as advised")
    tied = verdict("head", {"head": head, "all": head, "scratch": head._replace(accuracy=0.1)})
    assert tied == "head and all are tied here; one of them was advised"
    assert verdict("scratch", {"head": head, "all": head, "scratch": head._replace(accuracy=0.1)}).endswith(
        "scratch, which was advised, is worse"
    )
