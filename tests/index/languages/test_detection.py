"""The language of a text is told where the text says enough, and by ISO 639-3's macrolanguages."""

import pytest

from tercet.index.languages.detection import language_of

ENGLISH = "The bridge over the river was closed for repairs until the end of the month."


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (ENGLISH.upper(), "en"),
        ("Die Brücke über den Fluss wurde bis zum Ende des Monats für Reparaturen gesperrt.", "de"),
        (
            "강을 건너는 다리는 이달 말까지 보수 공사로 통행이 금지되었으며 차량은 돌아가야 합니다.",
            "ko",
        ),
        (
            "川に架かる橋は今月末まで補修工事のため通行止めとなり、車は迂回路を使うことになります。",
            "ja",
        ),
        (
            "这座跨河大桥因维修而关闭到本月底，所有车辆都必须绕行，请司机们提前安排好自己的路线。",
            "zho",
        ),
        ("Most preko rijeke bio je zatvoren zbog popravka do kraja mjeseca, kažu u gradu.", "hbs"),
    ],
)
def test_texts_of_a_sentence(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize("text", ["", "WF-M5799DWF", "1,000,000 " * 50, "iPhone 12 Pro Max 256 GB", "\n\0"])
def test_what_says_too_little_has_none(text: str) -> None:
    assert language_of(text) == ""


def test_the_beginning_decides() -> None:
    assert language_of(ENGLISH * 8 + "Der Rest ist in einer anderen Sprache geschrieben. " * 50) == "en"
