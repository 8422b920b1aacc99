"""Documents from files of text, each of which is one: Markdown, plain text, HTML and PDF."""
