"""Reading of logits: sums over the vocabulary, where the logits are."""
