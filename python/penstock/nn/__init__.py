"""Modules of torch whose weights are arrays of Penstock. Needs torch."""

from penstock.nn.clipping import clip_grad_norm_
from penstock.nn.copies import copies_in
from penstock.nn.embedding import Embedding
from penstock.nn.embedding_bag import EmbeddingBag

__all__ = ["Embedding", "EmbeddingBag", "clip_grad_norm_", "copies_in"]
