"""Words that are not to come back as names: private language that nobody greps for."""

import ast
from collections.abc import Iterator
from pathlib import Path

import foveal

PACKAGE = Path(foveal.__file__).parent
WORDS = """
Aside Answers Apart Attentive AskForm AskInputs Chooser Chosen Described Drawn Encoded Eye Fitted Form Found
Given GlimpseKind Glimpses Guesser HardestTask Joined Judged Kind Loaded Marks Meter Ninth Pace Part Pictures
PicturedKind Preflight Prepared Proxied Reading Recipe Room Routed Say Screen Seen Shares Shots Shown Taken
TellingKind Walk Walker Watch WritingKind
aside by_content culprit errands evenly found found_surely heard held_out_order input_files
judge judged left_out located machine_code make_inputs memory_attention once open_inputs outline
picture_sets pictured preflight prepare_again refused regrid remember retina say search_order seen shares
lend_processor lendable_encoder lends_model_as modules_beside surest_task
spelled stale telling time_steps told training_order transformer_step unwatched usual walks
"""
OLD_WORDS = frozenset(WORDS.split())
"""Names of the first version; `docs/glossary.md` has the words in their place."""
NEVER_CLEAR = "aside asked culprit found heard judge judged looked said some told"
LOCAL_WORDS = frozenset(NEVER_CLEAR.split())
"""Words that are too vague even for a local variable."""


def defined_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """A fused decoding step: one new position per row through all blocks of a Transformer."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name, node.lineno
        if isinstance(node, ast.arg):
            yield node.arg, node.lineno
        if isinstance(node, ast.Module | ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.Assign):
                    targets = statement.targets
                elif isinstance(statement, ast.AnnAssign):
                    targets = [statement.target]
                else:
                    continue
                for target in targets:
                    if isinstance(target, ast.Name):
                        yield target.id, statement.lineno


def local_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that are assigned inside functions, loops and comprehensions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def old_words(path: Path) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [(path.stem, 1), *defined_names(tree)]
    old = {(line, name) for name, line in names if name.strip("_") in OLD_WORDS}
    names += local_names(tree)
    old |= {(line, name) for name, line in names if name.strip("_") in LOCAL_WORDS}
    return [f"{path.name}:{line}: {name}" for line, name in sorted(old)]


def test_no_old_word_is_a_name() -> None:
    assert [word for path in sorted(PACKAGE.rglob("*.py")) for word in old_words(path)] == []


def test_an_old_word_would_be_seen(tmp_path: Path) -> None:
    path = tmp_path / "new.py"
    path.write_text(
        "class Judged:\n    told: str\n\n    def outline(self, say):\n        _found = [some for some in []]"
    )
    assert old_words(path) == [
        "new.py:1: Judged",
        "new.py:2: told",
        "new.py:4: outline",
        "new.py:4: say",
        "new.py:5: _found",
        "new.py:5: some",
    ]
