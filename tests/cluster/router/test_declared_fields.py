"""Fields that are declared over shards, in all of them or in none."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx
import pytest

from tercet.service.remote.http import HttpTransport
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest
from tests.cluster.router.servers import CLIENT, COLLECTION, DEMO, DOCUMENTS, Servers, error_of, ids_in, put

pytestmark = pytest.mark.slow


def test_fields_that_one_shard_refuses_are_declared_in_none(servers: Servers) -> None:
    url, shards = servers.over(2)
    first, second = ids_in(0, 2)[0], ids_in(1, 2)[0]
    documents = [
        {"id": first, "text": "tea", "metadata": {"size": 3}},
        {"id": second, "text": "tea", "metadata": {"size": "large"}},
    ]
    assert CLIENT.put(f"{url}{DOCUMENTS}", json={"documents": documents}).status_code == 200
    for kind in ("integer", "keyword"):
        refused = CLIENT.post(f"{url}{DEMO}/fields", json={"fields": {"size": kind}})
        assert error_of(refused) == (422, "invalid_document")
        assert refused.json()["error"]["param"] == "fields.size"
        for each in shards:
            assert "size" not in CLIENT.get(f"{each}{DEMO}").json()["fields"]
    assert CLIENT.post(f"{url}{DOCUMENTS}/delete", json={"ids": [second]}).status_code == 200
    declared = CLIENT.post(f"{url}{DEMO}/fields", json={"fields": {"size": "integer"}})
    assert declared.status_code == 200, declared.text
    found = CLIENT.get(f"{url}{DOCUMENTS}", params={"filter": '{"gt":{"size":2}}'}).json()["documents"]
    assert [each["id"] for each in found] == [first]


def test_fields_of_which_one_shard_got_another_type_meanwhile_harm_nobody(servers: Servers) -> None:
    """A document comes between the look whether fields can be declared and their declaration."""
    other, own = ids_in(0, 2)[0], ids_in(1, 2)[0]
    wrong = {"documents": [{"id": own, "text": "tea", "metadata": {"size": "large"}}]}
    urls = [servers.start(f"shard{number}") for number in range(2)]

    class Meanwhile:
        def __init__(self, inner: HttpTransport) -> None:
            self.name = inner.name
            self._inner = inner

        async def request(self, request: RemoteRequest) -> RemoteAnswer:
            asked = request.method, request.path, self.name
            if asked == ("POST", f"{DEMO}/fields", urls[0]) and wrong["documents"]:
                async with httpx.AsyncClient() as client:
                    assert (await client.put(f"{urls[1]}{DOCUMENTS}", json=wrong)).is_success
            return await self._inner.request(request)

    url = servers.start_router("router", Meanwhile, *urls)
    assert CLIENT.put(f"{url}{DEMO}", json=COLLECTION).status_code == 201
    sized = {"fields": {"size": "integer"}}
    assert error_of(CLIENT.post(f"{url}{DEMO}/fields", json=sized)) == (422, "invalid_document")
    assert ["size" in CLIENT.get(f"{each}{DEMO}").json()["fields"] for each in urls] == [True, False]
    assert "size" not in CLIENT.get(f"{url}{DEMO}").json()["fields"]
    search = {"collection": "demo", "query": "tea"}
    assert len(CLIENT.post(f"{url}/search", json=search).json()["hits"]) == 1
    refused = CLIENT.post(f"{url}/search", json={**search, "filter": {"exists": "size"}})
    assert error_of(refused) == (422, "invalid_filter")
    assert put(url, other).status_code == 200

    wrong["documents"] = []
    body = {"metadata": {"size": 3}, "merge": True}
    assert CLIENT.patch(f"{url}{DOCUMENTS}/{own}", json=body).status_code == 200
    assert CLIENT.post(f"{url}{DEMO}/fields", json=sized).status_code == 200
    found = CLIENT.get(f"{url}{DOCUMENTS}", params={"filter": '{"exists":"size"}'}).json()["documents"]
    assert [each["id"] for each in found] == [own]


def test_of_two_routers_that_declare_a_field_with_two_types_one_does(servers: Servers) -> None:
    """Each has looked whether the field can be declared before the other declares it."""
    urls = [servers.start(f"shard{number}") for number in range(3)]
    looked = {name: threading.Event() for name in ("integer", "keyword")}
    declared = {(name, url): threading.Event() for name in looked for url in urls}
    waits_for = {("integer", urls[2]): ("keyword", urls[2]), ("keyword", urls[1]): ("integer", urls[1])}

    async def happened(event: threading.Event) -> None:
        await asyncio.to_thread(event.wait, 1)

    class Interleaved:
        def __init__(self, inner: HttpTransport, kind: str) -> None:
            self.name, self._inner, self._kind = inner.name, inner, kind

        async def request(self, request: RemoteRequest) -> RemoteAnswer:
            declares = (request.method, request.path) == ("POST", f"{DEMO}/fields")
            if declares:
                looked[self._kind].set()
                for event in looked.values():
                    await happened(event)
                if (self._kind, self.name) in waits_for:
                    await happened(declared[waits_for[self._kind, self.name]])
            answer = await self._inner.request(request)
            if declares:
                declared[self._kind, self.name].set()
            return answer

    def declare(kind: str) -> httpx.Response:
        return CLIENT.post(f"{routers[kind]}{DEMO}/fields", json={"fields": {"size": kind}})

    routers = {kind: servers.start_router(kind, partial(Interleaved, kind=kind), *urls) for kind in looked}
    assert CLIENT.put(f"{routers['integer']}{DEMO}", json=COLLECTION).status_code == 201
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(declare, routers))
    assert sorted(answer.status_code for answer in answers) == [200, 422]
    kind = next(kind for kind, answer in zip(routers, answers, strict=True) if answer.status_code == 200)
    assert [CLIENT.get(f"{each}{DEMO}").json()["fields"].get("size") for each in urls] == [kind] * 3
