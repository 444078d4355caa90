"""What the embedded tabletop environments share: scenes, simulator, goals, episode, expert."""
