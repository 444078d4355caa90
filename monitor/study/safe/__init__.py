"""Train a probe on the policy's features, hold it to account on episodes that it has not seen."""
