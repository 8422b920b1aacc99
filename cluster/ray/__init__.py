"""What runs on Ray; the only place that knows it. It is imported where that was asked for."""
