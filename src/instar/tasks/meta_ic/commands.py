"""The commands of MetaIC: `instar captions …` and `instar pool …`."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from instar.cli.options import Json, Judging, RunArgument, Threshold, Trust
from instar.cli.printing import new_console, print_json

if TYPE_CHECKING:
    import polars as pl

    from instar.tasks.meta_ic.language import Reading
    from instar.tasks.meta_ic.pool_maker import MadePool, PoolProgress

captions = typer.Typer(no_args_is_help=True, help="Captions: how they are read, and which of them look wrong.")
pool = typer.Typer(no_args_is_help=True, help="Pools of cut-out objects, which `insert` pastes into images.")
_SHEET_OBJECTS = 240


@pool.callback()
def _pool() -> None:
    """Without a callback, Typer makes an application of one command that command, and `make` would not be its name."""


@captions.command()
def words(
    caption: Annotated[str, typer.Argument(metavar="CAPTION", help="The caption, in quotes.")],
    vocabulary: Annotated[str, typer.Option(help="The classes and their words: coco, or a TOML file.")] = "coco",
    as_json: Json = False,
) -> None:
    """Show which objects a caption names, how many, and why every word counts or does not.

    Example:

        instar captions words "a dog on two benches next to a bus stop"
    """
    from instar.tasks.meta_ic.comparison import is_foreign, vocabulary_of
    from instar.tasks.meta_ic.language import read_caption

    reading = read_caption(caption, vocabulary_of(vocabulary))
    if as_json:
        kinds = {"mentions": reading.mentions, "dismissed": reading.dismissed, "wider": reading.wider}
        listed = {
            name: [{**asdict(mention), "words": caption[mention.start : mention.end]} for mention in mentions]
            for name, mentions in kinds.items()
        }
        print_json({"caption": caption, "english": not is_foreign(reading), "objects": reading.objects, **listed})
    else:
        _show_reading(reading)
        if is_foreign(reading):
            print("This caption is not English, and only English is read: rules do not judge a pair of such captions.")


def _show_reading(reading: Reading) -> None:
    from rich.text import Text

    console = new_console()
    coloured = Text(reading.text)
    for style, mentions in (
        ("bold green", reading.mentions),
        ("dim strike", reading.dismissed),
        ("yellow", reading.wider),
    ):
        for mention in mentions:
            coloured.stylize(style, mention.start, mention.end)
    console.print(coloured)
    for mention in reading.mentions:
        again = " (named before)" if mention.again else ""
        console.print(Text(f"  {mention.label}, {mention.number}{again}: {mention.why}"))
    for mention in reading.dismissed:
        console.print(Text(f"  no {mention.label}: {mention.why}", style="dim"))
    for mention in reading.wider:
        console.print(Text(f"  {mention.label}, {mention.number}: {mention.why}", style="dim"))
    named = ", ".join(f"{label} ({number})" for label, number in reading.objects.items())
    console.print(Text(f"objects: {named or 'none'}"))


@captions.command()
def labels(
    run: RunArgument,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--captions",
            metavar="DATASET",
            help="A dataset with captions of the same images, under the same ids; the run's own by default.",
        ),
    ] = None,
    vocabulary: Annotated[str, typer.Option(help="The classes and their words: coco, or a TOML file.")] = "coco",
    most: Annotated[int, typer.Option(min=1, help="List at most this many.")] = 30,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write all of them as CSV, to be filled in.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List captions of people that leave out what a captioner names with and without an inserted object.

    The likeliest come first: those where the other captions of the image name it. In the file is_error is to be filled
    in, true where the caption leaves out what is in the image, false where nothing of it is there; `instar marks RUN
    --import FILE` reads it back, and says how many are wrong.

    Examples:

        instar captions labels runs/captions --captions captions_train2017.json

        instar captions labels runs/captions --out labels.csv
    """
    from instar.api import open_run
    from instar.report.words import count_of
    from instar.tasks.meta_ic.labels import label_problems, write_sheet

    human, opened = None if dataset is None else _captions_of(dataset), open_run(run)
    problems = label_problems(opened, human, vocabulary=vocabulary)
    marks = 0 if out is None else write_sheet(opened, problems, out)
    if as_json:
        print_json(problems.head(most).to_dicts())
        return
    _show_problems(problems, most)
    if marks:
        print(f"{out} keeps what people said of {count_of(marks, 'label')}")


def _captions_of(dataset: str) -> Mapping[str, Sequence[str]]:
    """The captions of each case of a dataset."""
    from instar.datasets import dataset as opened
    from instar.outputs.caption import Caption

    return {case.id: case.truth.text.split("\n") for case in opened(dataset).cases() if isinstance(case.truth, Caption)}


def _show_problems(problems: pl.DataFrame, most: int) -> None:
    from instar.report.words import count_of
    from instar.tasks.meta_ic.labels import left_out_words

    console = new_console()
    for row in problems.head(most).iter_rows(named=True):
        for sentence in left_out_words(row):
            console.print(sentence, markup=False, highlight=False)
        console.print(f"    {row['case']} #{row['number']}: {row['label']}", markup=False, highlight=False)
    shown = f"; the first {most} are shown" if problems.height > most else ""
    count, images = count_of(problems.height, "label"), count_of(problems["case"].n_unique(), "image")
    console.print(f"{count} of {images}{shown}", highlight=False)


@captions.command()
def suspicious(
    run: RunArgument,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="The folder that they are written to.")],
    threshold: Threshold = None,
    judging: Judging = "default",
    dataset: Annotated[Path | None, typer.Option(help="Where the images are now, if they were moved.")] = None,
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Write pairs of captions that look wrong, for people to look at, and corrected captions to train on.

    pairs.csv has both captions, what is wrong with them and columns to fill in: is_error, true or false, and a comment.
    `instar marks RUN --import pairs.csv` reads them back. captions.json has the follow-ups with corrected captions in
    COCO's form.

    Example:

        instar captions suspicious runs/captions --out suspicious/
    """
    from instar.api import open_run
    from instar.report.words import count_of, one_line
    from instar.tasks.meta_ic.suspicious import export_suspicious

    def progress(done: int, total: int) -> None:
        if not as_json and (done == total or done % 100 == 0):
            print(f"{done:,} of {total:,} pairs", file=sys.stderr, flush=True)

    written = export_suspicious(
        open_run(run, trust=trust), out, threshold=threshold, judging=judging, dataset=dataset, on_progress=progress
    )
    if as_json:
        print_json(asdict(written))
        return
    pairs, images = count_of(written.pairs, "pair"), count_of(written.images, "image")
    print(f"{out} has {pairs}, {images} and {count_of(written.captions, 'corrected caption')}")
    if written.marks:
        print(f"{out / 'pairs.csv'} keeps what was written into {count_of(written.marks, 'pair')}")
    for reason in written.missing[:5]:
        print(one_line(f"no images: {reason}"))
    if len(written.missing) > 5:
        print(f"no images of {len(written.missing) - 5} more")


@pool.command()
def make(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="Images with masks, such as COCO's instances; any images with --segmenter."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the pool goes: new or empty.")],
    segmenter: Annotated[
        str | None,
        typer.Option(
            metavar="SYSTEM", help="A system whose detections have masks; the dataset's own masks by default."
        ),
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only this class; may be given several times.")] = None,
    most: Annotated[int, typer.Option(min=1, help="At most this many objects of a class, the first ones.")] = 50,
    limit: Annotated[int | None, typer.Option(min=1, help="Only this many cases, the first ones.")] = None,
    sheet: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"Also a PNG that shows up to {_SHEET_OBJECTS} of the objects.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Cut whole objects out of images, for `insert`: a folder of PNGs with alpha, one sub-folder per class.

    What is small, cut off by the border, in pieces, hidden in part or a crowd is left out, and counted. Look at the
    sheet, and delete the files you do not like. Licences of COCO's images are kept in pool.jsonl.

    Examples:

        instar pool make instances_train2017.json --out pool/ --sheet pool.png

        instar pool make photos/ --segmenter my.module:segment --label dog --label cat --out pool/
    """
    from instar.datasets import dataset as opened
    from instar.systems import system
    from instar.tasks.meta_ic.pool_maker import make_pool

    made = make_pool(
        opened(dataset),
        out,
        segmenter=None if segmenter is None else system(segmenter),
        labels=label or (),
        most=most,
        limit=limit,
        on_progress=_PoolLines(),
    )
    if sheet is not None:
        from instar.report import contact_sheet, write_png

        items = made.pool.items[:: -(-len(made.pool) // _SHEET_OBJECTS)]
        write_png(sheet, contact_sheet([(item.on_grey(), item.label) for item in items], tile=160))
    if as_json:
        counts = {name: getattr(made, name) for name in ("kept", "licences", "rejected", "failed")}
        print_json({"pool": str(out), "objects": len(made.pool), **counts})
    else:
        _show_pool(made, out, sheet)


class _PoolLines:
    """Says on stderr how far the making of a pool is, every five seconds."""

    def __init__(self) -> None:
        self.last = time.monotonic()

    def __call__(self, progress: PoolProgress) -> None:
        if time.monotonic() - self.last > 5:
            self.last = time.monotonic()
            print(f"{progress.cases:,} cases, {progress.kept:,} objects", file=sys.stderr, flush=True)


def _show_pool(made: MadePool, out: Path, sheet: Path | None) -> None:
    from instar.report.words import count_of, one_line

    classes = len(made.kept)
    print(f"{out} has {count_of(len(made.pool), 'object')} of {classes} {'class' if classes == 1 else 'classes'}")
    for what, counts in (("left out", made.rejected), ("licence", made.licences)):
        for name, count in counts.items():
            print(one_line(f"{count:>7,}  {what}: {name}"))
    for case, reason in made.failed.items():
        print(one_line(f"failed: {case}: {reason}"))
    if sheet is not None:
        print(sheet)
