"""A Ray cluster of several nodes on this machine."""

from __future__ import annotations

import os
import random
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

NODES = 2


class Nodes:
    """A head that works on nothing, and nodes with a core each."""

    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        os.environ["PYTHONPATH"] = os.pathsep.join([str(root / "src"), str(root), *sys.path])
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="ray-")  # other clusters on this machine are not ours
        clusters: Any = import_module("ray.cluster_utils")  # late: only these lives need Ray
        self._cluster = clusters.Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
        )
        self._nodes = [self._cluster.add_node(num_cpus=1) for _ in range(NODES)]

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def lose_one(self, drawn: random.Random) -> None:
        """One node dies at once, with all that runs on it; another one joins."""
        node = self._nodes.pop(drawn.randrange(len(self._nodes)))
        self._cluster.remove_node(node, allow_graceful=False)
        self._nodes.append(self._cluster.add_node(num_cpus=1))

    def close(self) -> None:
        self._cluster.shutdown()
