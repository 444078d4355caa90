"""Reading of logits: one pass over the vocabulary, where the logits are."""

from monitor.reading.logits.digest import digest_logits, token_metrics

__all__ = ["digest_logits", "token_metrics"]
