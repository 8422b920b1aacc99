"""In which languages the documents of a collection are."""
