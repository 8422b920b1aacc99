"""What a visitor of the demo would ask, in five languages: the first answer is one that answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import tercet

pytestmark = pytest.mark.slow

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"
# Each question with the documents that answer it, in whichever language.
QUESTIONS = {
    "how do bees show each other the way to flowers?": "en-honeybee-dance",
    "why is the sky blue?": "en-sky-blue ja-sky-blue de-himmel",
    "What is the difference between a patent and a copyright?": "en-patent en-copyright",
    "why do leaves change colour in autumn?": "en-autumn-leaves",
    "how can I avoid getting sick in the mountains?": "en-altitude-sickness",
    "who broke the German cipher in the war?": "en-enigma",
    "what is an inverted index?": "en-inverted-index ko-inverted-index",
    "왜 하늘은 파란가": "en-sky-blue ja-sky-blue de-himmel",
    "배추를 발효시킨 음식은 무엇인가요?": "ko-kimchi en-kimchi",
    "밀물과 썰물은 왜 생기나요?": "ko-tides en-moon-tides",
    "꿀벌은 꽃이 있는 곳을 어떻게 서로 알려 주나요?": "en-honeybee-dance",
    "한글은 누가 만들었나요?": "ko-hangul en-hangul",
    "물가가 오르는 이유는 무엇인가요?": "ko-inflation en-inflation",
    "철새는 어떻게 길을 찾나요?": "en-bird-migration ja-bird-migration de-zugvoegel",
    "空が青いのはなぜですか": "ja-sky-blue en-sky-blue de-himmel",
    "地震はなぜ起こるのですか": "ja-earthquake en-earthquake",
    "抗生物質はウイルスに効きますか": "ja-antibiotics en-antibiotics",
    "キムチはどうやって作りますか": "ko-kimchi en-kimchi",
    "ブラックホールとは何ですか": "ja-black-hole en-black-hole",
    "绿茶和红茶有什么区别？": "zh-tea en-green-tea",
    "长城有多长？": "zh-great-wall en-great-wall",
    "为什么天空是蓝色的？": "ja-sky-blue en-sky-blue de-himmel",
    "豆腐是怎么做的？": "zh-tofu en-tofu",
    "疫苗是怎么起作用的？": "en-vaccines ko-vaccine en-mrna-vaccine",
    "Warum finden Zugvögel ihren Weg?": "de-zugvoegel en-bird-migration ja-bird-migration",
    "Warum ist der Himmel blau?": "de-himmel en-sky-blue ja-sky-blue",
    "Wie entsteht ein Polarlicht?": "de-polarlicht en-aurora",
    "Wann fiel die Berliner Mauer?": "de-mauerfall en-berlin-wall",
    "Wie macht man Sauerkraut?": "en-sauerkraut",
    "Was ist ein schwarzes Loch?": "en-black-hole ja-black-hole",
}
# Another document comes first: of the language of the question, or near to all questions in Chinese.
MISSED = {
    "世界で一番高い山はどこですか": "en-everest zh-everest",
    "蜜蜂怎么告诉同伴花在哪里？": "en-honeybee-dance",
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tercet.Collection]:
    lines = (DEMO / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    with tercet.open(tmp_path_factory.mktemp("demo"), checkpoint="multi-m3") as store:
        collection = store.collection("demo", create=True)
        collection.put([json.loads(line) for line in lines])
        yield collection


@pytest.mark.parametrize(("question", "answers"), QUESTIONS.items())
def test_the_first_answer_answers(demo: tercet.Collection, question: str, answers: str) -> None:
    found = demo.search(question, top_k=3).hits
    assert found[0].id in answers.split(), [(hit.id, hit.score, hit.scores) for hit in found]


@pytest.mark.parametrize(("question", "answers"), MISSED.items())
def test_an_answer_that_is_not_first_is_among_three(
    demo: tercet.Collection, question: str, answers: str
) -> None:
    assert {hit.id for hit in demo.search(question, top_k=3).hits} & {*answers.split()}
