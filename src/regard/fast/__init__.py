"""Transformers on CTranslate2: the extra `[fast]`."""
