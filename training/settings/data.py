"""Settings of `tercet train` about its data and its batches; those of pairs have more than those of texts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tercet.training.settings.table import AtLeast0, AtLeast1, Many, Positive, Table, require

# Two special tokens, and one word to read beside another.
CutTokens = Annotated[int, Field(ge=4)]


class SourceSettings(Table):
    """One file of training data, below the data folder. `title` and `licence` go into the model card.

    `most`: at most so many pairs or texts are taken from the shuffled file. `lines`: the first and last line
    of the file that are taken. `language`: only texts whose `lang`, their own or that of their `metadata`, is
    this.
    """

    path: str
    title: str
    licence: str
    most: AtLeast1 | None = None
    lines: Many[int] = ()
    language: str | None = None

    @model_validator(mode="after")
    def _lines_ascend(self) -> SourceSettings:
        ordered = len(self.lines) == 2 and 1 <= self.lines[0] <= self.lines[1]
        require(not self.lines or ordered, "lines", self.lines, "two numbers, 1 ≤ first ≤ last")
        return self


class TextSource(SourceSettings):
    """Documents for pre-training: JSON lines `{"text", "title"?}`, as in BEIR's corpus, the positives of
    pairs, or plain text, a document a line.
    """

    format: Literal["texts"]


class QuerySource(SourceSettings):
    """Pairs of a query with passages.

    format: `pairs` are JSON lines `{"query", "pos": [...], "neg": [...]?}`. The others make them of
    documents, as `TextSource` reads them: `titles` of title and text, `spans` of a span of a text and the
    rest of it (inverse cloze task, Lee et al. 2019, arXiv 1906.00300), `repeats` of a text with itself, which
    differ by dropout (SimCSE, Gao et al. 2021, arXiv 2104.08821).
    train: whether its pairs are trained on. join_up_to: neighbouring passages of the file are joined in
    groups of 1 to this many.
    """

    format: Literal["pairs", "titles", "spans", "repeats"] = "pairs"
    train: bool = True
    join_up_to: AtLeast1 = 1

    @model_validator(mode="after")
    def _pairs_have_no_language(self) -> QuerySource:
        read = self.language is None or self.format != "pairs"
        require(read, "language", self.language, "left out with format 'pairs'")
        return self


class Tags(Table):
    """Of what a source's texts are, for an adapter of kind hypernetwork."""

    language: str
    task: str


class PairSource(QuerySource):
    """Pairs for a stage that trains an encoder.

    The first `development_pairs` of the shuffled pairs are held out: ranked against the passages of all of
    them and of `development_passages` more, they choose the checkpoint. With `train = false` the file serves
    the development set only. `mine`: whether hard negatives are mined for it; `taught`: whether the run's
    teacher scores it. `weight`: of its pairs in the loss, beside those of other sources. `tags`: its language
    and task, for a hypernetwork.
    """

    development_pairs: AtLeast0 = 0
    development_passages: AtLeast0 = 0
    mine: bool = True
    taught: bool = False
    weight: Positive = 1.0
    tags: Tags | None = None

    @model_validator(mode="after")
    def _repeats_choose_no_checkpoint(self) -> PairSource:
        """Among passages a query finds itself at once."""
        choosing = self.development_pairs if self.format == "repeats" else 0
        require(choosing == 0, "development_pairs", choosing, "0 with format 'repeats'")
        return self


class ScoreSource(QuerySource):
    """Pairs for a cross-encoder. write_scores: whether it writes the file again with its scores."""

    format: Literal["pairs", "titles", "spans"] = "pairs"
    write_scores: bool = False

    @model_validator(mode="after")
    def _only_pairs_have_scores(self) -> ScoreSource:
        written = self.format == "pairs" or not self.write_scores
        require(written, "write_scores", self.write_scores, "left out but with format 'pairs'")
        return self


class DataSettings(Table):
    """Sources, and the length in tokens at which passages and documents are cut.

    What occurs inside a document of a `held_out` BEIR folder is left out: a document, or a pair with such a
    passage.
    """

    passage_tokens: CutTokens = 256
    held_out: Many[str] = ()


class TextData(DataSettings):
    """Documents."""

    sources: Many[TextSource]

    @model_validator(mode="after")
    def _some_source(self) -> TextData:
        require(len(self.sources) >= 1, "sources", len(self.sources), "at least 1")
        return self


class QueryData(DataSettings):
    """Pairs, and the length in tokens at which queries are cut."""

    query_tokens: CutTokens = 64


class ScoreData(QueryData):
    """Pairs for a cross-encoder."""

    sources: Many[ScoreSource]

    @model_validator(mode="after")
    def _files_differ(self) -> ScoreData:
        names = [
            source.path.rpartition("/")[2].removesuffix(".gz")
            for source in self.sources
            if source.write_scores
        ]
        alike = sorted({name for name in names if names.count(name) > 1})
        require(not alike, "file names of sources with write_scores", alike, "different from each other")
        training = sum(source.train for source in self.sources)
        require(training >= 1, "sources with train = true", training, "at least 1")
        return self

    @property
    def pairs(self) -> PairData:
        """What is read of them to train on."""
        sources = [source.model_dump(exclude={"write_scores"}) for source in self.sources]
        return PairData(
            **self.model_dump(exclude={"sources"}), sources=tuple(PairSource(**s) for s in sources)
        )


class PairData(QueryData):
    """Pairs for a stage that trains an encoder."""

    sources: Many[PairSource]

    @model_validator(mode="after")
    def _sources_train_and_differ(self) -> PairData:
        training = sum(source.train for source in self.sources)
        require(training >= 1, "sources with train = true", training, "at least 1")
        titles = [source.title for source in self.sources if source.development_pairs]
        alike = sorted({title for title in titles if titles.count(title) > 1})
        require(not alike, "titles of sources with development_pairs", alike, "different from each other")
        return self


class LengthGroup(Table):
    """What has at most `tokens` tokens, and no shorter group takes, comes `batch` a step on each device.

    Of a pair its longest positive counts. A batch has two or more, since negatives are in-batch.
    """

    tokens: AtLeast1
    batch: Annotated[int, Field(ge=2)]


class BatchSettings(Table):
    """How texts come into batches, each of one source and one length group.

    sub_batch_tokens: padded tokens of one pass of the body. gradient_checkpointing: the body keeps only its
    layers' inputs and computes the rest again.
    """

    groups: Many[LengthGroup] = (LengthGroup(tokens=100_000, batch=32),)
    sub_batch_tokens: AtLeast1 = 8192
    gradient_checkpointing: bool = False

    @model_validator(mode="after")
    def _groups_ascend(self) -> BatchSettings:
        require(len(self.groups) >= 1, "groups", len(self.groups), "at least one")
        tokens = [group.tokens for group in self.groups]
        require(tokens == sorted(set(tokens)), "groups", tokens, "in order of their tokens")
        return self


class QueryBatches(BatchSettings):
    """How pairs do.

    negatives: passages beside the positive that every query brings, where it has or mined as many.
    neighbours: so many consecutive pairs of the file come into a batch together.
    """

    negatives: AtLeast0 = 7
    neighbours: AtLeast1 = 1


class PairBatches(QueryBatches):
    """How pairs do that meet each other's passages.

    gradient_cache: representations of the whole batch are computed without a graph, and each sub-batch again
    with one, so that memory holds one sub-batch; by default where a step has more than `sub_batch_tokens` and
    the body trains; one more forward pass is the price.
    """

    gradient_cache: bool | None = None
