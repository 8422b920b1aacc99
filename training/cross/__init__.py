"""A cross-encoder, which reads query and passage together: how it trains, and the scores that it writes."""
