"""π0, a flow-matching policy: PaliGemma with an action expert (Black et al. 2024)."""
