"""Writes the walkers beside this file: people simulated on simulated maps, that no version of goalmap was trained on.

From the repository's root: python -m examples.walkers.generate
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import cv2
import numpy as np

from training.goalmap.simulate import NAMES, PAST, cases

HERE = Path(__file__).parent
WORLDS = range(30_000_000, 30_000_005)
EACH = 6
STEPS = 12
SETTINGS = f"""# Simulated; examples/walkers/generate.py wrote this, the maps and walkers.csv.
names = {list(NAMES)}
rate = 2.5

[map]
""".replace("'", '"')


def main() -> None:
    settings = SETTINGS
    with (HERE / "walkers.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("scene", "track", "frame", "x", "y"))
        for number, world in enumerate(WORLDS, 1):
            made = list(cases(world, steps=STEPS))
            [(usual, _)] = Counter(id(case.classes) for case in made).most_common(1)
            here = [case for case in made if id(case.classes) == usual and len(case.past) == PAST]
            # those who go furthest: who stands still shows little
            here.sort(key=lambda case: -np.linalg.norm(case.futures[0, -1] - case.past[0]))
            scene = f"campus-{number}"
            cv2.imwrite(str(HERE / f"{scene}.png"), here[0].classes)
            settings += f'{scene} = "{scene}.png"\n'
            for walker, case in enumerate(here[:EACH], 1):
                for frame, (x, y) in enumerate(np.concatenate([case.past, case.futures[0]])):
                    table.writerow((scene, walker, frame, f"{x:.2f}", f"{y:.2f}"))
    (HERE / "scene.toml").write_text(settings, "utf-8")


if __name__ == "__main__":
    main()
