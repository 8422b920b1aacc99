"""The official clients of other services, unchanged: what they get is what `/embed` and `/rerank` give."""

from __future__ import annotations

import base64

import cohere
import huggingface_hub
import huggingface_hub.errors
import numpy as np
import ollama
import openai
import pytest
from tercet_client import Client

TEXTS = ["Green tea is brewed with hot water.", "A steam train crosses the bridge."]
CLOSE = 1e-5


@pytest.fixture(scope="module")
def dense(client: Client) -> np.ndarray:
    found = client.embed(TEXTS, outputs=["dense"]).dense
    assert found is not None
    return found


@pytest.mark.parametrize("base", ["/v1", "/v1/"])
@pytest.mark.parametrize("form", ["float", "base64"])
def test_openai(url: str, key: str, dense: np.ndarray, base: str, form: str) -> None:
    with openai.OpenAI(base_url=url + base, api_key=key) as client:
        answer = client.embeddings.create(model="tercet", input=TEXTS, encoding_format=form)
        vectors = [
            np.frombuffer(base64.b64decode(one.embedding), "<f4")
            if isinstance(one.embedding, str)
            else one.embedding
            for one in answer.data
        ]
        assert np.allclose(vectors, dense, atol=CLOSE)
        assert "multi-m3" in [model.id for model in client.models.list()]
        with pytest.raises(openai.UnprocessableEntityError):
            client.embeddings.create(model="tercet", input=TEXTS, dimensions=10_000)
    with (
        openai.OpenAI(base_url=url + base, api_key="wrong") as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.models.list()


def test_ollama(url: str, key: str, dense: np.ndarray) -> None:
    client = ollama.Client(url, headers={"Authorization": f"Bearer {key}"})
    answer = client.embed(model="tercet", input=TEXTS)
    assert np.allclose(answer.embeddings, dense, atol=CLOSE)
    assert (answer.prompt_eval_count or 0) > 0
    assert np.allclose(
        client.embeddings(model="tercet:latest", prompt=TEXTS[0]).embedding, dense[0], atol=CLOSE
    )
    [own, *_] = client.list().models
    assert own.model == "multi-m3"
    shown = client.show(own.model)
    assert shown.capabilities == ["embedding"]
    assert (shown.modelinfo or {})["bert.embedding_length"] == dense.shape[1]
    with pytest.raises(ollama.ResponseError, match="dimensions is 10000") as error:
        client.embed(model="tercet", input=TEXTS, dimensions=10_000)
    assert error.value.status_code == 422


def test_hugging_face(url: str, key: str, dense: np.ndarray) -> None:
    client = huggingface_hub.InferenceClient(f"{url}/tei", token=key)
    assert np.allclose(client.feature_extraction(TEXTS), dense, atol=CLOSE)
    same = client.feature_extraction(TEXTS, normalize=True, prompt_name="passage", truncate=True)
    assert np.allclose(same, dense, atol=CLOSE)
    found = client.sentence_similarity(TEXTS[0], TEXTS, model=f"{url}/tei/similarity")
    assert np.allclose(found, dense @ dense[0], atol=CLOSE)
    with pytest.raises(huggingface_hub.errors.HfHubHTTPError, match="422"):
        client.sentence_similarity(TEXTS[0], [], model=f"{url}/tei/similarity")


def test_cohere(url: str, key: str, client: Client, dense: np.ndarray) -> None:
    with cohere.ClientV2(api_key=key, base_url=url) as other:
        answer = other.embed(
            model="tercet", input_type="search_document", texts=TEXTS, embedding_types=["float"]
        )
        assert np.allclose(answer.embeddings.float_ or [], dense, atol=CLOSE)
        ranked = other.rerank(model="tercet", query="which train crosses a bridge?", documents=TEXTS, top_n=1)
        own = client.rerank("which train crosses a bridge?", TEXTS, top_k=1)
        assert [one.index for one in ranked.results] == [one["index"] for one in own["results"]] == [1]
