"""Glossaries and translation memories: what a translator brings along."""
