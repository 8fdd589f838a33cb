"""The development split of English EWT as two files; every fifth sentence is in `test.conllu`.

The file is `ud_english_ewt_dev.conllu` in the folder that FOVEAL_DATA names: 2,001 sentences with gold tags.
"""

from pathlib import Path

from benchmarks.outside import write_splits

TEST_INTERVAL = 5
"""Every fifth sentence is a test sentence."""


def split(treebank: Path, into: Path) -> dict[str, int]:
    """Write `into/train.conllu` and `into/test.conllu`. Return the number of sentences of each."""
    sentences = [block for block in treebank.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    splits = {
        "train": [block for number, block in enumerate(sentences, 1) if number % TEST_INTERVAL],
        "test": sentences[TEST_INTERVAL - 1 :: TEST_INTERVAL],
    }
    into.mkdir(parents=True, exist_ok=True)
    for name, blocks in splits.items():
        text = "".join(f"{block.strip()}\n\n" for block in blocks)
        (into / f"{name}.conllu").write_text(text, encoding="utf-8")
    return {name: len(blocks) for name, blocks in splits.items()}


if __name__ == "__main__":
    write_splits(__doc__, "ud_english_ewt_dev.conllu", split)
