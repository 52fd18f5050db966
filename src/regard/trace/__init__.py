"""Everything a translation did, as one document, and the pictures of it."""
