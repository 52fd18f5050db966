"""Reports: one document of sections, tables, figures and examples, as a page, Markdown or plain text."""
