"""Ways to ask one system about the same follow-ups of the same images. `benchmarks.peers` compares what they cost.

    python -m benchmarks.ways WAY FOLDER CASES OUT

Every way reads images from a folder, makes follow-ups by the 20 rules of `rules.py`, asks a system that costs nothing
about sources and follow-ups, and compares its answers. It runs in a process of its own and times what it reads and
transforms (`clock.py`); the rest is what the way itself costs.
"""

TITLES = {
    "instar": "Instar, one worker",
    "instar on all cores": "Instar, a worker for every core (the default)",
    "gemtest": "gemtest, a relation for every rule",
    "gemtest in one relation": "gemtest, all rules in one relation",
    "nrtk": "nrtk, perturbers wrapped for MAITE",
    "albumentations": "a loop with albumentations that stores Parquet",
    "opencv": "a loop with OpenCV that stores Parquet",
}
"""The ways that are compared."""
