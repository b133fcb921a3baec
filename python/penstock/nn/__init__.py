"""Modules of torch whose weights are arrays of Penstock. Needs torch."""

from penstock.nn.embedding import Embedding, EmbeddingBag

__all__ = ["Embedding", "EmbeddingBag"]
