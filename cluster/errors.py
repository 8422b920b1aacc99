"""The root of all exceptions of what goes beyond one machine."""


class ClusterError(Exception):
    """Any failure beyond one machine; its message names what failed and the remedy."""
