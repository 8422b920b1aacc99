"""From characters to token ids: vocabularies of each file format, under `models.tokenizer`."""
