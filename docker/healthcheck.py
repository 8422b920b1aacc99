"""Container health check: exits 0 when GET /health, or the path given, answers 200 on this container's port.

Uses `http.client` so that a proxy in the environment is never asked for a loopback address.
"""

import http.client
import os
import sys

TIMEOUT_SECONDS = 4.0


def main(path: str = "/health") -> int:
    """0 when the path answers 200; otherwise 1, with one line that says why."""
    port = int(os.environ.get("TERCET_PORT") or 8080)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        sys.stderr.write(f"GET {path} on port {port}: {error}\n")
        return 1
    finally:
        connection.close()
    if status != http.client.OK:
        sys.stderr.write(f"GET {path} on port {port} answered {status}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
