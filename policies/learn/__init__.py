"""Learning `openvla-mini` from demonstrations in simulation."""
