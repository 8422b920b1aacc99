"""What all compatible APIs have in common."""

import pkgutil
from importlib import import_module

import tercet.service.compat as package
from tercet.service.compat.apis import EmbedApi
from tercet.service.load.gate import EMBEDDINGS


def test_the_gate_knows_all_that_embed() -> None:
    modules = [
        import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    apis = {id(api): api for module in modules for api in vars(module).values() if isinstance(api, EmbedApi)}
    paths = {path for api in apis.values() for path in (api.path, *api.also)}
    assert {"/embed", *paths} == EMBEDDINGS
