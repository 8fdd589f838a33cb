"""Reports as files and as folders."""

import json
from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.inspection.panels import Table
from foveal.inspection.payload import Payload
from foveal.studies.report_files import REPORTS, check_report_path, write_report

PAYLOAD = Payload("check", "demo", "all holds", (Table("", ("law",), (("a",),)),), "a caveat", "exact")


@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_gets_a_page_numbers_and_a_picture(exists: bool, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    if exists:
        folder.mkdir()
    check_report_path(folder)
    write_report(PAYLOAD, folder)
    assert {each.name for each in folder.iterdir()} == {*REPORTS}
    assert json.loads((folder / "report.json").read_text())["title"] == "all holds"


def test_a_file_gets_the_format_of_its_ending(tmp_path: Path) -> None:
    write_report(PAYLOAD, tmp_path / "laws.svg")
    assert (tmp_path / "laws.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("laws.htm", "expected a name that ends in"),
        ("missing/laws.html", "no folder"),
        ("missing/reports", "no folder"),
        ("laws", "expected a name that ends in"),
    ],
)
def test_what_can_not_be_written_is_refused_before_the_work(name: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "laws").write_text("a file of the user")
    with pytest.raises(UserError, match=says):
        check_report_path(tmp_path / name)
    assert [each.name for each in tmp_path.iterdir()] == ["laws"]
