"""BLEU and chrF are sacrebleu's, and the counts of the sentences give the same scores."""

import json
import math
import random
import subprocess
import sys

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from foveal.metrics.translation import bleu, bleu_if_meaningful, chrf
from foveal.metrics.unicode_scripts import bleu_tokenizer

WORDS = ["the", "a", "cat", "sat", "on", "mat", ",", ".", "and", "very", "small", "Größe", "3.5", "isn't"]
metrics = pytest.mark.parametrize(("score", "peer"), [(bleu, BLEU), (chrf, CHRF)], ids=["bleu", "chrf"])


def pairs(count: int, longest: int) -> tuple[list[str], list[str]]:
    """References, and outputs with some of their words, shorter and longer; some of both are empty."""
    draw = random.Random(0)
    references = [" ".join(draw.choices(WORDS, k=draw.randrange(longest + 1))) for _ in range(count)]
    outputs = [
        " ".join(draw.choice([word, word, "", f"{draw.choice(WORDS)} so"]) for word in reference.split())
        for reference in references
    ]
    return references, outputs


def test_bleu_by_hand() -> None:
    """5 of 5 words, 3 of 4 pairs, 2 of 3 triples, 1 of 2 quadruples; 5 words for 6."""
    score = bleu(["the cat sat on the mat"], ["the cat sat on mat"])
    assert score.value == pytest.approx(100 * math.exp(1 - 6 / 5) * (3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert score.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")


def test_chrf_by_hand() -> None:
    """abcd for abce: of 4, 3, 2 and 1 n-grams are right 3, 2, 1 and 0, in precision as in recall."""
    score = chrf(["ab ce"], ["a bcd"])
    assert score.value == pytest.approx(100 * (3 / 4 + 2 / 3 + 1 / 2) / 4)
    assert score.signature.startswith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:")


def test_the_command_lines_figures(tmp_path) -> None:
    references, outputs = pairs(60, 12)
    (tmp_path / "ref").write_text("\n".join(references) + "\n", encoding="utf-8")
    (tmp_path / "out").write_text("\n".join(outputs) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "ref", "-i", "out", "-m", "bleu", "chrf", "-w", "10"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    for score, found in zip((bleu, chrf), json.loads(done.stdout), strict=True):
        ours = score(references, outputs)
        assert ours.value == pytest.approx(found["score"], abs=1e-9)
        assert ours.signature == found["signature"]


@metrics
@pytest.mark.parametrize("longest", [2, 5, 20])
def test_a_selection_scores_as_a_corpus(score, peer, longest) -> None:
    references, outputs = pairs(80, longest)
    ours = score(references, outputs)
    assert ours.on_rows(np.arange(80)) == pytest.approx(ours.value, abs=1e-9)
    generator = np.random.default_rng(0)
    for size in (1, 2, 5, 80, 200):
        rows = generator.integers(80, size=size)
        chosen = [outputs[row] for row in rows], [[references[row] for row in rows]]
        assert ours.on_rows(rows) == pytest.approx(peer().corpus_score(*chosen).score, abs=1e-9)


@metrics
def test_each_sentence_alone(score, peer) -> None:
    references, outputs = pairs(40, 9)
    single = {"effective_order": True} if peer is BLEU else {}
    for one, output, reference in zip(
        score(references, outputs).per_example, outputs, references, strict=True
    ):
        assert one == peer(**single).sentence_score(output, [reference]).score


@metrics
def test_identical_is_100_and_nothing_is_0(score, peer) -> None:
    references = ["The small cat sat on a mat.", "Größe 3.5 isn't very small"]
    assert score(references, references).value == pytest.approx(100)
    assert score(references, references).per_example == pytest.approx([100, 100])
    assert score(references, ["", ""]).value == 0
    assert score(["", ""], ["", ""]).value == 0


def test_bleu_without_spaces_takes_its_tokenizer() -> None:
    references, outputs = ["我喜欢在公园里看小猫"], ["我喜欢在公园里看小狗"]
    assert bleu(references, outputs, tokenize="13a").value == 0
    score = bleu(references, outputs)
    assert score.value > 80
    assert "tok:zh" in score.signature


@pytest.mark.parametrize(
    ("text", "tokenizer"),
    [
        ("公園で子猫を見るのが好きです", "char"),
        ("ฉันชอบดูลูกแมวในสวน", "char"),
        ("Ich heiße 王", "13a"),
        ("12 + 3 = 15", "13a"),
        ("", "13a"),
    ],
)
def test_the_tokenizer_of_a_script(text: str, tokenizer: str) -> None:
    assert bleu_tokenizer([text]) == tokenizer


def test_bleu_is_left_out_where_it_says_nothing() -> None:
    """BLEU of texts under four words is 0 even if all are right."""
    short, long = ["a red cat", "two dogs"], ["a red cat", "two dogs run fast"]
    assert bleu(short, short).value == 0
    assert bleu_if_meaningful(short, short) is None
    assert bleu_if_meaningful(short, [*map(str.upper, long)]) is None
    score = bleu_if_meaningful(long, short)
    assert score is not None
    assert score.value == bleu(long, short).value
    assert bleu_if_meaningful(["今日は雨"], ["今日は雨"]) is not None, "characters count as words there"
