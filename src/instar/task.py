"""Task: what one testing task brings, by name. Built-in tasks and installed packages come through the same door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Task:
    """What a task brings. Nothing of it is imported before it is asked for.

    Every table maps a name to the place of the thing: `package.module:object`, or `.module:object` inside `package`.
    The object is the thing itself, or a table in which the thing stands under its name.

    >>> Task("my-task", "my_package", relations=dict.fromkeys(("same", "near"), ".relations:RELATIONS")).relations
    {'same': '.relations:RELATIONS', 'near': '.relations:RELATIONS'}
    """

    name: str
    package: str
    help: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Output kinds: classes that keep the contract of `instar.Output`."""
    systems: Mapping[str, str] = field(default_factory=dict)
    """`instar.SystemFamily` objects."""
    datasets: Mapping[str, str] = field(default_factory=dict)
    """`instar.DatasetFamily` objects."""
    transformations: Mapping[str, str] = field(default_factory=dict)
    """`instar.TransformationFamily` objects."""
    relations: Mapping[str, str] = field(default_factory=dict)
    """`instar.Relation` objects."""
    own_relations: Mapping[str, str] = field(default_factory=dict)
    """No places: by transformation, the relation that its rules mean where they name none, as it is written. A
    transformation after which another answer is right has one; all others mean the output's own equivariance."""
    suites: Mapping[str, str] = field(default_factory=dict)
    """`instar.Suite` objects, or functions without parameters that make them."""
    panels: Mapping[str, str] = field(default_factory=dict)
    """`instar.report.Panel` objects, which suites name: the figures, tables and words that a report shows."""
    pages: Mapping[str, str] = field(default_factory=dict)
    """`instar.viewer.Page` objects: what the viewer shows at `/NAME`."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """Typer applications: the subcommands of `instar NAME`."""
