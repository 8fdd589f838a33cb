"""The development part of English EWT as two files: every fifth sentence is in `test.conllu`.

The file is `ud_english_ewt_dev.conllu` in the folder that FOVEAL_DATA names: 2,001 sentences with gold tags.
"""

from pathlib import Path

from benchmarks.outside import write_parts

EVERY = 5


def cut(treebank: Path, into: Path) -> dict[str, int]:
    """Write `into/train.conllu` and `into/test.conllu`; how many sentences each has."""
    sentences = [block for block in treebank.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    parts = {
        "train": [block for number, block in enumerate(sentences, 1) if number % EVERY],
        "test": sentences[EVERY - 1 :: EVERY],
    }
    into.mkdir(parents=True, exist_ok=True)
    for part, blocks in parts.items():
        text = "".join(f"{block.strip()}\n\n" for block in blocks)
        (into / f"{part}.conllu").write_text(text, encoding="utf-8")
    return {part: len(blocks) for part, blocks in parts.items()}


if __name__ == "__main__":
    write_parts(__doc__, "ud_english_ewt_dev.conllu", cut)
