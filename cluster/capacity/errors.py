"""Why a plan cannot be made."""

from tercet.cluster.errors import ClusterError


class CapacityError(ClusterError):
    """What was asked for is beyond what was measured; the message says how far that goes."""
