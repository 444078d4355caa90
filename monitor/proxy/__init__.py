"""A proxy between a robot's client and its policy server that monitors every step."""
