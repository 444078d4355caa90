"""A proxy between a robot client and its policy server that monitors every step."""
