"""Word alignment: links, which attention to read, gold files, attention and statistical aligners."""
