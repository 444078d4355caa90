"""Table-top tasks of a WidowX-250s arm in ManiSkill 3, with nothing to download."""
