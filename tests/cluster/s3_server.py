"""The S3 server of the tests: moto's, with one PUT of an object at a time.

By itself it looks whether an object is there and then writes it, between which another request may do so.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from moto.s3.responses import S3Response
from moto.server import main

TURN = threading.Lock()
put_object = S3Response.put_object


def alone(response: S3Response) -> Any:
    """What moto answers, once all earlier PUTs are done."""
    with TURN:
        return put_object(response)


if __name__ == "__main__":
    S3Response.put_object = alone
    main(sys.argv[1:])
