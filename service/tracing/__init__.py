"""OpenTelemetry spans of requests and the W3C ids that join them over servers."""
