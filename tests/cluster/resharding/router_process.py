"""A router that follows a map, in a process that can be killed."""

from __future__ import annotations

import sys
from pathlib import Path

from tercet.cluster.router.app import create_router_app
from tercet.service.serving import run_server
from tercet.service.settings.settings import Settings
from tests.conftest import TinyEncoder

if __name__ == "__main__":
    url, data, port = sys.argv[1:]
    settings = Settings(
        data=Path(data),
        shards=(url,),
        port=int(port),
        follow_seconds=0.1,
        max_wait_seconds=60,
        log_level="warning",
    )
    run_server(create_router_app(settings, TinyEncoder()), settings)
