"""Qualities, wildcards and refusals in `Accept` and `Accept-Encoding`."""

import pytest

from tercet.service.http.negotiation import preferred_encoding, preferred_type, refuses_identity

JSON, BINARY = "application/json", "application/x-safetensors"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ([], JSON),
        ([""], JSON),
        (["*/*"], JSON),
        (["application/*"], JSON),
        (["application/json, application/x-safetensors"], JSON),
        ([BINARY], BINARY),
        (["Application/X-Safetensors"], BINARY),
        (["application/json;q=0.5, application/x-safetensors;q=0.9"], BINARY),
        (["application/json;q=0.9", "application/x-safetensors;q=0.5"], JSON),
        (["application/json;q=0.9", "application/x-safetensors"], BINARY),
        (["application/x-safetensors, */*"], BINARY),
        (["application/x-safetensors, */*;q=0.1"], BINARY),
        (["application/x-safetensors;q=0.2, */*;q=0.3"], JSON),
        (["application/json;q=0, */*"], BINARY),
        (["application/x-safetensors ; Q=0.000"], JSON),
        (["application/x-safetensors;q=1.5"], JSON),
        (["application/x-safetensors;q=0.1234"], JSON),
        (["application/x-safetensors;v=1;q=0.5, application/json;q=0.4"], BINARY),
        (['application/json;profile="a,b";q=0.1, application/x-safetensors;q=0.2'], BINARY),
        (["application/x-safetensors-two"], JSON),
        (["text/html, image/*"], JSON),
        (["*/*;q=0"], JSON),
        (["application/*;q=0, application/x-safetensors;q=0"], JSON),
        ([',;=", \\"'], JSON),
    ],
)
def test_media_types(accept: list[str], expected: str) -> None:
    assert preferred_type(accept, (JSON, BINARY)) == expected


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ([], "identity"),
        ([""], "identity"),
        (["gzip"], "gzip"),
        (["gzip, deflate, br"], "gzip"),
        (["gzip, deflate, br, zstd"], "zstd"),
        (["GZIP;q=1.0", "zstd;q=0.9"], "gzip"),
        (["*"], "zstd"),
        (["gzip, *"], "gzip"),
        (["zstd;q=0, *"], "gzip"),
        (["gzip;q=0"], "identity"),
        (["gzip;q=0.001"], "gzip"),
        (["gzip;q=0.5, identity"], "identity"),
        (["gzip;q=0.5, identity;q=0.5"], "gzip"),
        (["br, deflate"], "identity"),
        (["identity;q=0"], "identity"),
        (["*;q=0"], "identity"),
        (["gzip;q=x"], "identity"),
    ],
)
def test_content_codings(accept: list[str], expected: str) -> None:
    assert preferred_encoding(accept, ("zstd", "gzip")) == expected


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ([], False),
        (["gzip"], False),
        (["*"], False),
        (["gzip, identity;q=0"], True),
        (["gzip, *;q=0"], True),
        (["identity;q=0.5, *;q=0"], False),
    ],
)
def test_identity_may_be_refused(accept: list[str], expected: bool) -> None:
    assert refuses_identity(accept) == expected
