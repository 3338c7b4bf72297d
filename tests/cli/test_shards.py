"""`instar run --shard` and `instar merge` as users and SLURM type them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import cv2
import pytest

from tests.cli.conftest import FORGETFUL, Type
from tests.toys import scene

ROOT = Path(__file__).parents[2]
SLURM = ROOT / "examples" / "slurm"
ALONE = ("--zones", "none", "--workers", "0")
RECORDING = """#!/bin/bash
printf '%s\\0' "$@" >> "$CALLS.{name}"
printf '\\n' >> "$CALLS.{name}"
"""
SBATCH = (
    RECORDING.format(name="sbatch")
    + """
while [[ $1 == --* ]]; do [[ $1 == --array=1-* ]] && count=${1#--array=1-}; shift; done
for number in $(seq "${count:-0}"); do
    SLURM_ARRAY_TASK_ID=$number SLURM_ARRAY_TASK_COUNT=$count SLURM_CPUS_PER_TASK=4 bash "$@"
done
echo '17;cluster'
"""
)


def test_a_shard_and_a_merge_are_typed_and_told(typed: Type, photos: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        out = ("--out", tmp_path / "run", "--shard", f"{number}/3")
        assert typed(*FORGETFUL, photos, *out, *ALONE).code == 0
    shown = typed("show", tmp_path / "run-2-of-3")
    assert "This run is shard 2 of 3" in shown.words
    folders = sorted(tmp_path.glob("run-*"))
    merged = typed("merge", *folders, "--out", tmp_path / "all")
    assert merged.code == 0, merged.stderr
    assert "9 new predictions were added; 2 runs were given." in merged.stdout
    assert "shard 3 of 3 is missing; merge again when it is done" in merged.words
    assert "3 of 3 cases violate at least one rule" in merged.words
    again = typed("merge", *folders, "--out", tmp_path / "all", "--json")
    assert json.loads(again.stdout)["fresh"] == 0


@pytest.mark.parametrize(
    ("shard", "message"),
    [("0/64", "there is no shard 0/64"), ("65/64", "numbered from 1 to 64"), ("a/b", "'a/b' is no shard; give its")],
)
def test_a_wrong_shard_is_one_line(typed: Type, photos: Path, tmp_path: Path, shard: str, message: str) -> None:
    refused = typed(*FORGETFUL, photos, "--out", tmp_path / "run", "--shard", shard, *ALONE)
    assert refused.code == 2 and message in refused.words
    assert not any(tmp_path.iterdir())


def test_a_folder_of_another_shard_is_refused_with_flags(typed: Type, photos: Path, tmp_path: Path) -> None:
    typed(*FORGETFUL, photos, "--out", tmp_path / "run", "--shard", "1/2", *ALONE)
    refused = typed(*FORGETFUL, photos, "--out", tmp_path / "run-1-of-2", *ALONE)
    assert refused.code == 2
    assert "run-1-of-2 is shard 1 of 2; go on with 1/2 (--shard), or give another folder (--out)" in refused.words


def test_a_shard_of_few_cases_is_no_failure(typed: Type, tmp_path: Path) -> None:
    """With one case there may be nothing to find, and with none there is no answer: who waits for all shards with exit
    code 0 must get them."""
    photos = tmp_path / "photos"
    photos.mkdir()
    cv2.imwrite(str(photos / "empty.png"), scene(objects=0).pixels)
    command = ("run", "tests.toys:rectangles", "gamma(2)", photos, "--out", tmp_path / "run")
    assert typed(*command, *ALONE).code == 3
    for number in (1, 2):
        assert typed(*command, "--shard", f"{number}/2", *ALONE).code == 0
    broken = ("run", "tests.cli.wrong:raising", "mirror(h) => detections", photos, "--out", tmp_path / "broken")
    codes = {typed(*broken, "--shard", f"{number}/2", *ALONE).code for number in (1, 2)}
    assert codes == {0, 3}, "a shard in which every prediction failed is one"


# --- SLURM -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", sorted(SLURM.glob("*.sh")), ids=lambda script: script.name)
def test_scripts_of_slurm_are_bash(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True)
    assert os.access(script, os.X_OK)


def test_an_array_of_jobs_predicts_all_shards_and_the_last_job_merges_them(
    typed: Type, photos: Path, tmp_path: Path
) -> None:
    """The scripts run with an `sbatch` that works at once; what they would call is then called here."""
    programs = {"sbatch": SBATCH, "srun": '#!/bin/bash\nexec "$@"\n', "instar": RECORDING.format(name="instar")}
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls")}

    def calls(name: str) -> list[list[str]]:
        text = (tmp_path / f"calls.{name}").read_text()
        return [line.split("\0")[:-1] for line in text.splitlines()]

    run = [str(word) for word in (*FORGETFUL[1:], photos, *ALONE)]
    subprocess.run([SLURM / "submit.sh", "3", tmp_path / "run", *run], check=True, env=environment, stdout=-3)
    array, merging = calls("sbatch")
    assert array[:2] == ["--parsable", "--array=1-3"]
    assert merging[0] == "--dependency=afterok:17"
    assert [words[words.index("--shard") + 1] for words in calls("instar")] == ["1/3", "2/3", "3/3"]
    assert calls("instar")[0][:3] == ["run", "--workers", "4"], "as many as the job has cores, unless options say more"
    for words in calls("instar"):
        assert typed(*words).code == 0
    subprocess.run([SLURM / "merge.sh", *merging[-2:]], check=True, env=environment)
    merged = typed(*calls("instar")[-1])
    assert merged.code == 0 and "12 new predictions were added; 3 runs were given." in merged.stdout
    assert "missing" not in merged.stdout


def test_a_submission_without_a_dataset_says_how_it_is_done() -> None:
    refused = subprocess.run([SLURM / "submit.sh", "64", "runs/first"], capture_output=True, text=True)
    assert refused.returncode == 2 and "SHARDS FOLDER SYSTEM SUITE DATASET" in refused.stderr
