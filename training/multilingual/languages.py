"""The languages that the multilingual vocabulary is made for, and how the sources name them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """Names of one language.

    code: ISO 639-1; iso: ISO 639-3, as FreeDict has it; catalogues: of gettext; help_pages: folders of
    LibreOffice's help; wordnets: files of the Open Multilingual Wordnet; left_out: FreeDict dictionaries
    that another source has better.
    """

    code: str
    iso: str
    catalogues: tuple[str, ...]
    help_pages: tuple[str, ...]
    wordnets: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


LANGUAGES = {
    language.code: language
    for language in (
        Language("ko", "kor", ("ko",), ("ko",), ("wikt-kor",)),
        Language("ja", "jpn", ("ja",), ("ja",), ("wikt-jpn",), ("jpn-eng",)),
        Language("zh", "zho", ("zh_CN", "zh_TW"), ("zh-CN", "zh-TW"), ("wikt-cmn", "data-cmn")),
        Language("de", "deu", ("de",), ("de",), ("wikt-deu",)),
        Language("es", "spa", ("es",), ("es",), ("wikt-spa",)),
        Language("fr", "fra", ("fr",), ("fr",), ("wikt-fra", "data-fra")),
        Language("ru", "rus", ("ru",), ("ru",), ("wikt-rus",)),
        Language("el", "ell", ("el",), ("el",), ("wikt-ell", "data-ell")),
        Language("ro", "ron", ("ro",), (), ("wikt-ron",)),
        Language("tr", "tur", ("tr",), ("tr",), ("wikt-tur",)),
        Language("vi", "vie", ("vi",), ("vi",), ("wikt-vie",)),
        Language("hi", "hin", ("hi",), ("hi",), ("wikt-hin",)),
        Language("ar", "ara", ("ar",), (), ("wikt-arb", "data-arb")),
        Language("th", "tha", ("th",), (), ("wikt-tha",)),
        Language("it", "ita", ("it",), ("it",), ("wikt-ita", "data-ita")),
        Language("pt", "por", ("pt", "pt_BR"), ("pt", "pt-BR"), ("wikt-por", "data-por")),
        Language("nl", "nld", ("nl",), ("nl",)),
        Language("pl", "pol", ("pl",), ("pl",)),
        Language("id", "ind", ("id",), ("id",)),
    )
}
