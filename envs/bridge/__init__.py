"""ManiSkill 3's digital twins of four Bridge V2 tasks, under the contract of :mod:`envs.base`."""
