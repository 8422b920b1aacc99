"""The offline pipeline: from files of documents to a published collection, without HTTP."""
