"""Readers of dictionaries and catalogues, on a few lines each."""

from __future__ import annotations

import gzip
from pathlib import Path

from training.multilingual.translations import (
    cedict,
    dictd,
    edict,
    help_pages,
    plain,
    portable_objects,
    sino_korean,
    usable,
    wordnet,
    wordnet_lemmas,
)


def test_markup_and_marks_go() -> None:
    assert plain("Open _File &amp; <b>save</b> :class:`int`") == "Open File & save int"


def test_a_catalogue_without_fuzzy_entries(tmp_path: Path) -> None:
    path = tmp_path / "a.po"
    path.write_text(
        'msgid ""\nmsgstr "header"\n\nmsgid "two "\n"lines"\nmsgstr "deux lignes"\n\n'
        '#, fuzzy\nmsgid "doubt"\nmsgstr "doute"\n',
        encoding="utf-8",
    )
    assert list(portable_objects(path)) == [("deux lignes", "two lines")]


def test_help_pages_by_the_ids_of_their_paragraphs(tmp_path: Path) -> None:
    for folder, text in (("ko", "셀을 고른다."), ("en", "Select a cell.")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.html").write_text(f'<p id="par_id1" dir="auto">{text}</p>', encoding="utf-8")
    assert list(help_pages(tmp_path / "ko", tmp_path / "en")) == [("셀을 고른다.", "Select a cell.")]


def test_a_freedict_dictionary_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "a.dict.dz"
    path.write_bytes(gzip.compress("About it\nHaus /haʊs/\nhouse, building\n".encode()))
    assert list(dictd(path, english_first=False)) == [("Haus", "house"), ("Haus", "building")]
    assert list(dictd(path, english_first=True)) == [("house", "Haus"), ("building", "Haus")]


def test_chinese_words_and_their_korean_readings(tmp_path: Path) -> None:
    path, readings = tmp_path / "cedict.gz", tmp_path / "table.yml"
    path.write_bytes(gzip.compress("# note\n理論 理论 [li3 lun4] /theory/\n".encode()))
    readings.write_text('"\\u7406": "\\uB9AC"\n"\\u8AD6": "\\uB860"\n')
    entries = list(cedict(path))
    assert entries == [("理論", "理论", "theory")]
    assert list(sino_korean(entries, readings)) == [("이론", "theory")]  # 리 begins no word


def test_japanese_words(tmp_path: Path) -> None:
    path = tmp_path / "edict"
    path.write_bytes("head /x/\n政府 [せいふ] /(n) government/(P)/\n".encode("euc-jp"))
    assert list(edict(path)) == [("政府", "government"), ("せいふ", "government")]


def test_wordnets(tmp_path: Path) -> None:
    for name in ("noun", "verb", "adj", "adv"):
        (tmp_path / f"data.{name}").write_text("  licence\n")
    (tmp_path / "data.noun").write_text("  licence\n00000042 03 n 02 dwelling 0 living_room 0 000 | x\n")
    (tmp_path / "wn.tab").write_text("# wn\n00000042-n\tkor:lemma\t집\n00000042-n\tkor:def\t0\tx\n")
    pairs = list(wordnet(tmp_path / "wn.tab", wordnet_lemmas(tmp_path)))
    assert pairs == [("집", "dwelling"), ("집", "living room")]


def test_what_can_teach() -> None:
    assert usable(("집", "house"))
    assert not usable(("OK", "ok"))
    assert not usable(("집", "3.14 x 10"))
