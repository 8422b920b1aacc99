"""Pairs of two small manuals in three languages: sections, what is left in English, and pairs across."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tercet.training.multilingual.collect_manuals import across, chosen, editions, within
from tercet.training.multilingual.help_sections import gnome_sections, libreoffice_sections

LONG = {
    "en": "Choose Insert - Fields to put the number of the page into the footer of every page.",
    "de": "Wählen Sie Einfügen - Feldbefehl, um die Seitennummer in die Fußzeile jeder Seite zu setzen.",
    "ko": "삽입 - 필드를 선택하여 모든 페이지의 바닥글에 페이지 번호를 넣습니다. 그런 다음 확인을 누릅니다.",
}
PAGE = """<html><body><p>Help for LibreOffice</p>
<h1 id="hd_id1" dir="auto"><a name="x"></a>{title}</h1>
<p id="par_id2" class="paragraph">{text}</p>
<h2 id="hd_id3">{heading}</h2>
<p id="par_id4"><span class="emph">{second}</span> &amp; 1</p>
<p id="par_id5">7.5 = 8</p>
</body></html>"""
MALLARD = """<page xmlns="http://projectmallard.org/1.0/" id="wifi">
  <info><desc>{desc}</desc><credit><name>Somebody</name></credit></info>
  <title>{title}</title><p>{text}</p>
  <section><title>{heading}</title>
<list><item><p>{second}</p></item></list><media><p>no</p></media></section>
</page>"""


def write(root: Path, language: str, page: dict[str, str], wifi: dict[str, str]) -> None:
    """One page of each manual in a language."""
    names = {"en": ("en-US", "C")}
    first, second = names.get(language, (language, language))
    office = root / "usr/share/libreoffice/help" / first / "text/swriter/guide"
    office.mkdir(parents=True)
    (office / "footer.html").write_text(PAGE.format(**page), encoding="utf-8")
    gnome = root / "usr/share/help" / second / "gnome-help"
    gnome.mkdir(parents=True)
    (gnome / "wifi.page").write_text(MALLARD.format(**wifi), encoding="utf-8")


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    wifi_en = {
        "desc": "No network is found.",
        "title": "Wireless",
        "text": LONG["en"],
        "heading": "Range",
        "second": LONG["en"] + " Go nearer.",
    }
    write(
        tmp_path,
        "en",
        {"title": "Page Numbers", "text": LONG["en"], "heading": "More", "second": LONG["en"] + " Twice."},
        wifi_en,
    )
    wifi_de = {
        "desc": "Kein Netz ist da.",
        "title": "Funknetz",
        "text": LONG["de"],
        "heading": "Reichweite",
        "second": LONG["de"] + " Näher.",
    }
    # Of the German page of LibreOffice the second section was never translated.
    write(
        tmp_path,
        "de",
        {"title": "Seitenzahlen", "text": LONG["de"], "heading": "Mehr", "second": LONG["en"] + " Twice."},
        wifi_de,
    )
    write(
        tmp_path,
        "ko",
        {"title": "쪽 번호", "text": LONG["ko"], "heading": "더 보기", "second": "짧음"},
        {**wifi_en, "title": "무선"},
    )
    return tmp_path


def test_sections_of_libreoffice(debian: Path) -> None:
    first, second = libreoffice_sections(debian / "usr/share/libreoffice/help/en-US")
    assert (first.key, first.language, first.heading) == (
        "libreoffice/text/swriter/guide/footer#hd_id1",
        "en",
        "Page Numbers",
    )
    assert first.paragraphs == (LONG["en"],)
    assert second.heading == "Page Numbers - More"
    assert second.text == LONG["en"] + " Twice. & 1"  # what has no letters is left out


def test_sections_of_gnome(debian: Path) -> None:
    page, described, section = gnome_sections(debian / "usr/share/help/de/gnome-help")
    assert [s.heading for s in (page, described, section)] == [
        "Funknetz",
        "Kein Netz ist da.",
        "Funknetz - Reichweite",
    ]
    assert page.text == described.text == LONG["de"]
    assert section.paragraphs == (LONG["de"] + " Näher.",)
    assert {s.language for s in (page, described, section)} == {"de"}


def test_what_is_left_in_english_is_left_out(debian: Path) -> None:
    found = editions(debian)
    assert sorted(found) == ["de", "en", "ko"]
    assert sorted(s.heading for s in found["de"].values()) == [
        "Funknetz",
        "Funknetz - Reichweite",
        "Kein Netz ist da.",
        "Seitenzahlen",
    ]
    assert sorted(s.heading for s in found["ko"].values()) == ["쪽 번호", "쪽 번호 - 더 보기"]


def test_pairs_within_a_language_have_enough_text(debian: Path) -> None:
    lines = list(within(editions(debian)))
    assert {"query": "쪽 번호", "pos": [LONG["ko"]], "language": "ko"} in lines
    assert not any(line["query"] == "쪽 번호 - 더 보기" for line in lines)


def test_pairs_across_say_the_same_in_two_languages(debian: Path) -> None:
    lines: list[dict[str, Any]] = list(across(editions(debian), 3))
    assert all(line["language"] != line["to"] for line in lines)
    headings = {line["query"]: line for line in lines}
    korean = headings["쪽 번호"]
    assert korean["pos"] == [LONG[korean["to"]]]
    paragraph = headings[LONG["ko"]]
    assert paragraph["pos"] == [LONG[paragraph["to"]]]
    assert list(across(editions(debian), 3)) == lines


def test_at_most_so_many_of_each_language_and_each_pair_once() -> None:
    lines = [{"query": f"q{n % 6}", "pos": ["p"], "language": "de"} for n in range(12)]
    lines += [{"query": "x", "pos": ["p"], "language": "ko"}]
    found = list(chosen(lines, 4, 1))
    assert sorted(line["language"] for line in found) == ["de"] * 4 + ["ko"]
    assert len({str(line["query"]) for line in found}) == 5


def test_the_command_writes_both_files(debian: Path, tmp_path: Path, repository: Path) -> None:
    output = tmp_path / "manuals"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tercet.training.multilingual.collect_manuals",
            str(debian),
            "--output",
            str(output),
        ],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("within: 10 pairs")
    for name in ("within", "across"):
        with gzip.open(output / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        assert lines
        assert all(line["query"] and line["pos"][0] for line in lines)
