"""SpatialVLA on transformers' own PaliGemma parts and ZoeDepth, from the published checkpoints."""
