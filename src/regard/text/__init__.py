"""From text to ids and back: normaliser, words, tokenizers."""
