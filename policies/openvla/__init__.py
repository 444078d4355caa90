"""OpenVLA on transformers' own classes: the 7B checkpoint and the small model of this project."""
