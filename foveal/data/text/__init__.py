"""Text: tokenizers, corpora, and examples of texts."""
