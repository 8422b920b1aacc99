"""Idempotency keys: the digest that tells a repeat of a request from another one."""

import pytest

from tercet.service.documents.keys import write_key
from tercet.service.exceptions import InvalidRequestError
from tercet.service.schemas.documents import PutDocumentsRequest


def test_the_digest_of_a_body_is_that_of_its_plain_values() -> None:
    """Keys outlive an update of the server: what was written under one must be known again."""
    vectors = {"fingerprint": "f", "sparse": {"token_ids": [1], "weights": [0.5]}, "dense": [1.0, 0.0]}
    body = PutDocumentsRequest.model_validate(
        {
            "documents": [
                {"id": "a", "text": "b", "metadata": {"year": 1, "list": [None, {"x": 1}]}},
                {"id": "c", "text": "d", "representations": vectors},
            ],
            "idempotency_key": "k",
        }
    )
    plain = body.model_dump(exclude={"idempotency_key"})
    taken_apart = {name: value for name, value in body if name != "idempotency_key"}
    assert write_key("k", "PUT", ("demo",), taken_apart) == write_key("k", "PUT", ("demo",), plain)


def test_a_body_that_nests_too_deeply_is_no_bug() -> None:
    deep: dict[str, object] = {}
    for _ in range(300):
        deep = {"a": deep}
    with pytest.raises(InvalidRequestError, match="nests deeper than 250 levels"):
        write_key("k", "PATCH", ("demo", "tea"), {"metadata": deep})
    for _ in range(100):
        deep = deep["a"]  # type: ignore[assignment]
    assert write_key("k", "PATCH", ("demo", "tea"), {"metadata": deep}) is not None
