"""From characters to token ids: vocabularies of each file format, under `tercet.models.tokenizer`."""
