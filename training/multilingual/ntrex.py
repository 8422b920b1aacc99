"""Passages of news in many languages, which say the same in each, out of NTREX-128.

Federmann, Kocmi, Xin 2022: NTREX-128, News Test References for MT Evaluation of 128 Languages (CC BY-SA 4.0).
An article begins with the passage that is taken of it: a line a passage, for `tercet neutralize`.

Run: python -m tercet.training.multilingual.ntrex NTREX --output FOLDER
     (NTREX: a copy of the repository MicrosoftTranslator/NTREX)
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

# One variety of each language that XLM-RoBERTa reads and NTREX has, by NTREX's names.
LANGUAGES = """
afr amh arb aze-Latn bel ben bos bul cat ces cym dan deu ell est eus fas fin fra gle glg heb hin hrv hun
hye ind isl ita jpn kat kaz khm kor lav lit mkd msa nld nob pol por ron rus slk slv spa sqi srp-Cyrl swe
tam tha tur ukr urd vie zho-CN
""".split()  # noqa: SIM905 - a line each otherwise
ENGLISH = "newstest2019-src.eng.txt"
CHARACTERS = 1_000  # of a passage that has several sentences, at most


def passages(sentences: Sequence[str], articles: Sequence[str]) -> list[str]:
    """The beginning of each article: as many of its sentences as CHARACTERS hold, the first in any case.

    articles: of each sentence, the id of its article.
    """
    found = []
    for _, lines in groupby(zip(articles, sentences, strict=True), key=lambda line: line[0]):
        passage = ""
        for _, sentence in lines:
            longer = f"{passage} {sentence.strip()}".strip()
            if passage and len(longer) > CHARACTERS:
                break
            passage = longer
        found.append(passage)
    return found


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")


def main() -> None:
    """Writes a file for each language."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    articles = _lines(arguments.source / "DOCUMENT_IDS.tsv")
    texts = arguments.source / "NTREX-128"
    files = {language: texts / f"newstest2019-ref.{language}.txt" for language in LANGUAGES}
    arguments.output.mkdir(parents=True, exist_ok=True)
    for language, path in {"eng": texts / ENGLISH, **files}.items():
        text = "\n".join(passages(_lines(path), articles))
        (arguments.output / f"{language}.txt").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
