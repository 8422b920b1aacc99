"""The application for files of Ray Serve's own, as KubeRay has them.

There it is `import_path: tercet.cluster.ray.application:build`.
"""

from __future__ import annotations

from typing import Any

from tercet.cluster.ray.serving.application import application_of
from tercet.cluster.ray.serving.config import deployment_of


def build(args: dict[str, Any]) -> Any:
    """The application of a deployment. args: as the file of `tercet deploy ray` has them.

    Raises DeploymentFileError.
    """
    return application_of(deployment_of(args, "args"))
