"""The page at `/`: search, documents, collections, jobs and embeddings in a browser."""
