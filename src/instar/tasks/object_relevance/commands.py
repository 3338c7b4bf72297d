"""`instar objects`: the objects of an image explained, a detector measured, and repaired with what exposed it."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from instar.cli.options import DatasetArgument, Json, Judging, RunArgument, SystemArgument, Threshold, Trust
from instar.cli.printing import new_console, print_json
from instar.reading import file_text

if TYPE_CHECKING:
    from instar.tasks.object_relevance.repair import Chosen

objects = typer.Typer(
    no_args_is_help=True,
    help="Detectors: explain which objects are found because of themselves; measure and repair a detector.",
)


@objects.command()
def explain(
    run: RunArgument,
    case: Annotated[str, typer.Argument(metavar="CASE", help="A case of the run.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also write a PNG of the source and of the follow-ups that speak against it."),
    ] = None,
    dataset: Annotated[Path | None, typer.Option(help="Where the images are now, if they were moved.")] = None,
    judging: Judging = "default",
    trust: Trust = False,
    as_json: Json = False,
) -> None:
    """Say which objects of an image are found because of themselves, which are not, and why.

    Example:

        instar objects explain runs/objects 000000116270.jpg --out why.png
    """
    from dataclasses import asdict

    from rich.markup import escape

    from instar.api import open_run
    from instar.report.picture import write_png
    from instar.tasks.object_relevance.explain import explain as explanations_of
    from instar.tasks.object_relevance.explain import explanation_picture, object_names

    opened = open_run(run, trust=trust)
    explanations = explanations_of(opened, case, judging=judging)
    if as_json:
        print_json([asdict(one) for one in explanations])
    else:
        words = {True: "reliable", False: "[bold]unreliable[/]", None: "not judged"}
        names = object_names(opened, case, explanations, judging=judging)
        for one in explanations:
            reason = escape(f"{names[one.target]}: {one.why}")
            new_console().print(f"{words[one.reliable]}: {reason}", highlight=False)
    if out is not None:
        write_png(out, explanation_picture(opened, case, judging=judging, dataset=dataset))
        if not as_json:
            print(out)


Slice = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Also measure slices: the values of a column of the dataset, or both halves of what is measured of an "
        "image, such as brightness.",
    ),
]


@objects.command()
def evaluate(system: SystemArgument, dataset: DatasetArgument, slice: Slice = None, as_json: Json = False) -> None:
    """Measure a detector as it is on labelled images: mAP, precision, recall, TP, FP, FN and mean IoU.

    Give one command for each detector and each dataset: how good is a detector trained on A on B?

    Examples:

        instar objects evaluate efficientdet-lite0 instances_val2017.json

        instar objects evaluate 'reference-detector(repaired/trained/after-0/weights.npz)' shifted.json --slice style
    """
    from instar.datasets import dataset as opened
    from instar.outputs.detections import Detections
    from instar.systems import system as loaded
    from instar.tasks.object_relevance.repair import evaluate as evaluated
    from instar.tasks.object_relevance.repair import evaluation_text

    detector = loaded(system)
    if detector.kind != Detections.kind:
        raise typer.BadParameter(f"{system} answers with {detector.kind}, not with detections", param_hint="SYSTEM")
    table = evaluated(detector, opened(dataset), column=slice)
    if as_json:
        return print_json({"system": detector.name, "dataset": dataset, "rows": table.to_dicts()})
    print(evaluation_text(table), end="")
    failed = table["failed"][0]
    if failed:
        print(f"The system failed on {failed:,} more images, which are left out.")


Classes = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The model's classes, one name a line in the order of its numbers; by default those of the training set "
        "with its own numbers. Only with --export-only.",
    ),
]
Train = Annotated[str, typer.Option(help="The training set that RUN was made with; its objects are annotated.")]
Val = Annotated[str | None, typer.Option(help="The validation set, on which --search decides.")]
Test = Annotated[str | None, typer.Option(help="The test set. It is evaluated once, at the end.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The folder for training sets, weights and results.")]
Share = Annotated[float, typer.Option(min=0, max=1, help="The largest share of mutants in the training set.")]
Seeds = Annotated[int, typer.Option(min=1, help="How often each side is trained, with mutants and without.")]
TrainedBy = Annotated[str, typer.Option("--trainer", help="reference, or your own as package.module:function.")]
Start = Annotated[Path | None, typer.Option(help="Weights from which every training starts.")]
Rules = Annotated[
    list[str] | None, typer.Option("--rule", help="Take mutants of this rule only; may be given several times.")
]
Search = Annotated[
    bool,
    typer.Option(
        "--search",
        help="Try the mutants of every ratio and σ on a sample of the training set, and take those that are best on "
        "the validation set.",
    ),
]
ExportOnly = Annotated[
    bool,
    typer.Option(
        "--export-only", help="Write the training set with mutants, for a trainer of yours, and train nothing."
    ),
]


@objects.command()
def repair(
    run: RunArgument,
    train: Train,
    out: Out,
    val: Val = None,
    test: Test = None,
    share: Share = 0.15,
    seeds: Seeds = 3,
    trainer: TrainedBy = "reference",
    start: Start = None,
    rules: Rules = None,
    search: Search = False,
    threshold: Threshold = None,
    judging: Judging = "default",
    export_only: ExportOnly = False,
    classes: Classes = None,
    trust: Trust = False,
) -> None:
    """Train a detector anew with the follow-ups that exposed it (mutants), and compare before and after.

    RUN is a run of the detector before repair on its training set, with rules of the relation presence (the suite
    object-relevance). If it was stopped, the same command goes on where it was.

    Examples:

        instar objects repair runs/train --train train.json --val val.json --test test.json --out repaired

        instar objects repair runs/train --train train.json --val val.json --out augmented --export-only --share 0.2
    """
    from instar.api import open_run
    from instar.tasks.object_relevance import repair as repairing

    opened = open_run(run, trust=trust)
    if export_only:
        of_run = partial(repairing.augment, opened, train, out, validation=val, share=share, threshold=threshold)
        chosen = of_run(judging=judging, rules=rules, classes=_names(classes))
        return _print_mutants(chosen, f"{out}" if val else f"{repairing.NO_VALIDATION} Give --val to have one.\n{out}")
    if val is None or test is None or classes is not None:
        raise typer.BadParameter("a repair needs --val and --test, and --classes needs --export-only")
    try:
        result = repairing.repair(
            opened,
            train=train,
            val=val,
            test=test,
            out=out,
            seeds=seeds,
            by=trainer,
            start=start,
            searching=search,
            share=share,
            threshold=threshold,
            judging=judging,
            rules=rules,
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )
    except KeyboardInterrupt:
        print(f"what was trained is kept in {out}; the same command goes on from there", file=sys.stderr)
        raise
    _print_mutants(result.chosen, f"{repairing.markdown(result.table)}\n{out / 'result.md'}")


def _names(classes: Path | None) -> list[str] | None:
    return None if classes is None else file_text(classes).strip().splitlines()


def _print_mutants(chosen: Chosen, end: str) -> None:
    print(f"{chosen.mutants.height:,} of {chosen.available:,} mutants taken")
    for name, available, taken in chosen.counts.iter_rows():
        print(f"{taken:6,} of {available:6,}  {name}")
    print(f"\n{end}")
