"""An environment in a separate process, of this Python or of another one.

The simulator may then crash, hang or need packages that the policy cannot live with: its end costs
one episode. :class:`envs.host.hosted.HostedEnv` is the environment as the loop sees it; ``child``
is what the other Python runs, with numpy and the standard library as its only needs.

Calls point one way: ``hosted`` -> ``process`` -> ``channel`` -> ``codec`` in the parent, ``child``
-> ``server`` -> ``channel`` -> ``codec`` in the child.
"""
