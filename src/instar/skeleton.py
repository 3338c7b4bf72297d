"""Landmarks by name: left/right pairs, parts with their body lengths, groups, edges to draw.

The built-in skeletons are TOML files in `skeletons/`, written as a user writes one; `docs/skeletons.md`
describes the format. Left and right are the subject's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from instar.reading import file_text
from instar.shapes import Side
from instar.spelling import nearest, unknown

Indices = npt.NDArray[np.intp]

Length = tuple[tuple[int, ...], tuple[int, ...]]
"""Two ends, each the mean of some landmarks, given by index."""

_BUILT_IN = Path(__file__).parent / "skeletons"
_Fail = Callable[[str], ValueError]
_KEYS = ("name", "include", "landmarks", "pairs", "parts", "lengths", "spans", "groups", "edges", "default", "suite")
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
# What can stand unquoted in a rule's spelling and in a comma list of landmarks.
_NAME = re.compile(r"[^\W\d][\w.\-/@:]*")


@dataclass(frozen=True, slots=True)
class Part:
    """Landmarks that are found or missed together, measured by one body length.

    `lengths` are in order of preference: the first whose landmarks are all present is the published body length.
    `spans` are others of about the same size, seen from other sides: the longest of all is the body length that does
    not shrink when a subject turns.
    """

    name: str
    landmarks: tuple[int, ...]
    lengths: tuple[Length, ...] = ()
    spans: tuple[Length, ...] = ()


@dataclass(frozen=True)
class Skeleton:
    """What the landmarks of a pose are called and how they belong together.

    >>> coco = skeleton("coco-17")
    >>> coco.landmarks[:3], coco.index("left_eye"), int(coco.swap[1])
    (('nose', 'left_eye', 'right_eye'), 1, 2)
    """

    name: str
    landmarks: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    parts: tuple[Part, ...]
    groups: Mapping[str, tuple[str, ...]]
    edges: tuple[tuple[int, int], ...]
    default: str
    suite: str | None = None
    """The suite for systems that answer with it when nobody names one; None: that of all poses."""

    def __post_init__(self) -> None:
        # One order, whatever order a mapping came in (JSON writers may sort keys): equal skeletons are
        # then equal, and hash equal, after any round trip.
        parts = sorted(self.parts, key=lambda part: (min(part.landmarks, default=-1), part.name))
        object.__setattr__(self, "parts", tuple(parts))
        _check(self)
        groups = sorted(self.groups.items(), key=lambda item: (sorted(self._indices(item[1])), item[0]))
        frozen = MappingProxyType({name: tuple(members) for name, members in groups})
        object.__setattr__(self, "groups", frozen)
        try:
            self.select(self.default)
        except (KeyError, ValueError) as error:
            raise ValueError(f"skeleton {self.name!r}: default: {error}") from None

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Skeleton], tuple[object, ...]]:
        # A read-only mapping cannot be pickled, and skeletons travel to worker processes.
        parts, groups = self.parts, dict(self.groups)
        return Skeleton, (self.name, self.landmarks, self.pairs, parts, groups, self.edges, self.default, self.suite)

    @cached_property
    def _hash(self) -> int:
        groups = tuple(self.groups.items())
        return hash((self.name, self.landmarks, self.pairs, self.parts, groups, self.edges, self.default, self.suite))

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.landmarks)}

    @cached_property
    def swap(self) -> Indices:
        """Where each landmark goes when handedness flips: (L,) indices, an involution, read-only.

        `points[skeleton.swap]` are the landmarks of a mirrored subject, each under its own name again.
        """
        swap = np.arange(len(self.landmarks), dtype=np.intp)
        for a, b in self.pairs:
            swap[a], swap[b] = b, a
        swap.setflags(write=False)
        return swap

    @cached_property
    def sides(self) -> tuple[Side | None, ...]:
        """The subject's own side of each landmark; None where no landmark has one, as in a single hand.

        >>> skeleton("coco-17").sides[:3]
        ('middle', 'left', 'right')
        """
        if not self.pairs:
            return (None,) * len(self.landmarks)
        left, right = (set(indices) for indices in zip(*self.pairs, strict=True))
        numbers = range(len(self.landmarks))
        return tuple("left" if i in left else "right" if i in right else "middle" for i in numbers)

    def index(self, landmark: str) -> int:
        try:
            return self._place[landmark]
        except KeyError:
            raise unknown("landmark", landmark, self.landmarks) from None

    def select(self, landmarks: str) -> tuple[tuple[Part, tuple[int, ...]], ...]:
        """The chosen landmarks by part: parts in the skeleton's order, those without any left out.

        `landmarks` is `all`, the name of a part, group or landmark, or several with commas between them.

        >>> [(part.name, chosen) for part, chosen in skeleton("coco-17").select("nose, left_wrist")]
        [('body', (0, 9))]
        """
        chosen = self._indices(name.strip() for name in landmarks.split(","))
        groups = ((part, tuple(i for i in part.landmarks if i in chosen)) for part in self.parts)
        return tuple((part, indices) for part, indices in groups if indices)

    def _indices(self, names: Iterable[str]) -> set[int]:
        chosen: set[int] = set()
        parts = {part.name: part.landmarks for part in self.parts}
        for name in names:
            if name == "all":
                chosen.update(range(len(self.landmarks)))
            elif name in parts:
                chosen.update(parts[name])
            elif name in self.groups:
                chosen |= self._indices(self.groups[name])
            elif name in self._place:
                chosen.add(self._place[name])
            else:
                known = ["all", *parts, *self.groups, *self.landmarks]
                # A long list is not printed by `unknown`; parts and groups are what one looks for then.
                see = f"There are: {', '.join(known[: -len(self.landmarks)])}, and single landmarks."
                raise unknown("landmark group", name, known, see=see if len(known) > 25 else "")
        return chosen

    def mapping(self, other: Skeleton) -> tuple[Indices, Indices]:
        """Indices of the landmarks both skeletons name, in this skeleton's order: its own, and the other's.

        >>> flic, mediapipe = skeleton("flic-11").mapping(skeleton("mediapipe-pose-33"))
        >>> mediapipe.tolist()
        [11, 13, 15, 12, 14, 16, 23, 24, 2, 5, 0]
        """
        both = [(i, other._place[name]) for i, name in enumerate(self.landmarks) if name in other._place]
        table = np.array(both, dtype=np.intp).reshape(-1, 2)
        return table[:, 0].copy(), table[:, 1].copy()

    # -- reading and writing

    def to_dict(self) -> dict[str, object]:
        """Plain lists and texts, in the structure of the TOML format with everything included spelled out."""

        def names(indices: Iterable[int]) -> list[str]:
            return [self.landmarks[i] for i in indices]

        def end(indices: tuple[int, ...]) -> str | list[str]:
            return self.landmarks[indices[0]] if len(indices) == 1 else names(indices)

        return {
            "name": self.name,
            "landmarks": list(self.landmarks),
            "pairs": [names(pair) for pair in self.pairs],
            "parts": {
                part.name: {
                    "landmarks": names(part.landmarks),
                    "lengths": [[end(a), end(b)] for a, b in part.lengths],
                    "spans": [[end(a), end(b)] for a, b in part.spans],
                }
                for part in self.parts
            },
            "groups": {name: list(members) for name, members in self.groups.items()},
            "edges": [names(edge) for edge in self.edges],
            "default": self.default,
            **({} if self.suite is None else {"suite": self.suite}),
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, object]) -> Skeleton:
        """A skeleton from the structure of the TOML format; the reverse of `to_dict`."""
        return _Reader(d, Path(), ()).read()

    @classmethod
    def from_toml(cls, path: str | Path) -> Skeleton:
        """A skeleton from a TOML file, called as the file is unless it says otherwise."""
        return _from_toml(Path(path), ())


def skeletons() -> tuple[str, ...]:
    """The names of the built-in skeletons."""
    return tuple(sorted(path.stem for path in _BUILT_IN.glob("*.toml")))


def skeleton(name_or_path: str) -> Skeleton:
    """A built-in skeleton by name, or one's own by a path that ends in `.toml`.

    >>> len(skeleton("mediapipe-holistic").landmarks)
    553
    """
    if name_or_path.endswith(".toml"):
        return Skeleton.from_toml(name_or_path)
    return _built_in(name_or_path)


@cache
def _built_in(name: str) -> Skeleton:
    known = skeletons()
    if name not in known:
        raise unknown("skeleton", name, known, see="Your own is given by a path ending in .toml.")
    return _from_toml(_BUILT_IN / f"{name}.toml", ())


def _from_toml(path: Path, within: tuple[Path, ...]) -> Skeleton:
    import tomllib

    try:
        if not path.exists():
            raise FileNotFoundError(f"there is no skeleton file {path}")
        d = tomllib.loads(file_text(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    here = path.resolve()
    if here in within:
        raise ValueError(f"{path} includes itself")
    try:
        return _Reader({"name": path.stem, **d}, path.parent, (*within, here)).read()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


# --- checking --------------------------------------------------------------------------------------


def _check(s: Skeleton) -> None:
    """Raise unless the fields make sense together."""

    def fail(why: str) -> ValueError:
        return ValueError(f"skeleton {s.name!r}: {why}")

    if not s.landmarks or not s.parts:
        raise fail(f"it has no {'parts' if s.landmarks else 'landmarks'}")
    _check_names(s, fail)
    indices: list[tuple[str, tuple[int, ...]]] = [("pairs", pair) for pair in s.pairs]
    indices += [("edges", edge) for edge in s.edges]
    for part in s.parts:
        indices.append((f"part {part.name}", part.landmarks))
        indices += [(f"part {part.name}: lengths", a + b) for a, b in (*part.lengths, *part.spans)]
    for where, some in indices:
        if any(not 0 <= i < len(s.landmarks) for i in some):
            raise fail(f"{where}: {some} is outside 0 to {len(s.landmarks) - 1}")
    _check_pairs(s, fail)
    _check_parts(s, fail)
    members_known = {*s.landmarks, *(part.name for part in s.parts)}
    for group, members in s.groups.items():
        if not members:
            raise fail(f"group {group} is empty")
        for member in members:
            if member not in members_known:
                raise fail(f"groups: {group}: {member!r} is no landmark or part{nearest(member, members_known)}")


def _check_names(s: Skeleton, fail: _Fail) -> None:
    """One name, one thing: `select` takes landmarks, parts and groups alike."""
    taken = {"all": "the word for all landmarks"}
    for what, names in (("landmark", s.landmarks), ("part", [p.name for p in s.parts]), ("group", s.groups)):
        for each in names:
            if not _NAME.fullmatch(each):
                raise fail(
                    f"{each!r} cannot be the name of a {what}; "
                    "a name starts with a letter and has letters, digits and _ . - / @ : in it"
                )
            if each in taken:
                raise fail(f"{each!r} names {taken[each]} and a {what}; names must differ")
            taken[each] = f"a {what}"


def _check_pairs(s: Skeleton, fail: _Fail) -> None:
    names = s.landmarks
    paired: dict[int, int] = {}
    for a, b in s.pairs:
        if a == b:
            raise fail(f"pairs: {names[a]!r} is paired with itself; leave landmarks of the midline out")
        for one, two in ((a, b), (b, a)):
            if one in paired:
                raise fail(f"pairs: {names[one]!r} is paired twice, with {names[paired[one]]!r} and {names[two]!r}")
            paired[one] = two
    for a, b in s.edges:
        if a == b:
            raise fail(f"edges: an edge goes from {names[a]!r} to itself")


def _check_parts(s: Skeleton, fail: _Fail) -> None:
    names = s.landmarks
    owner: dict[int, str] = {}
    for part in s.parts:
        if not part.landmarks:
            raise fail(f"part {part.name} has no landmarks")
        for i in part.landmarks:
            if i in owner:
                raise fail(
                    f"{names[i]!r} is in parts {owner[i]} and {part.name}; parts share no landmarks"
                    if owner[i] != part.name
                    else f"{names[i]!r} is in part {part.name} twice"
                )
            owner[i] = part.name
        for a_end, b_end in (*part.lengths, *part.spans):
            if not a_end or not b_end:
                raise fail(f"part {part.name}: lengths: an end has no landmarks")
            if set(a_end) == set(b_end):
                raise fail(f"part {part.name}: lengths: both ends are {', '.join(names[i] for i in a_end)}")
    left_over = [names[i] for i in range(len(names)) if i not in owner]
    if left_over:
        more = f" and {len(left_over) - 3} more" if len(left_over) > 3 else ""
        raise fail(f"{', '.join(left_over[:3])}{more} in no part; parts together hold all landmarks")


# --- reading ---------------------------------------------------------------------------------------


class _Reader:
    """Reads the structure of the TOML format. Included skeletons come first, in order."""

    def __init__(self, d: Mapping[str, object], folder: Path, within: tuple[Path, ...]) -> None:
        self.d, self.folder, self.within = d, folder, within
        self.name = d.get("name")
        for key in d:
            if key not in _KEYS:
                raise self.error(f"unknown key {key!r}{nearest(key, _KEYS)}; there are: {', '.join(_KEYS)}")
        self.landmarks: list[str] = []
        self.place: dict[str, int] = {}
        self.pairs: list[tuple[int, int]] = []
        self.parts: dict[str, Part] = {}
        self.groups: dict[str, tuple[str, ...]] = {}
        self.edges: list[tuple[int, int]] = []
        self.suites: set[str | None] = set()

    def error(self, why: str) -> ValueError:
        return ValueError(f"skeleton {self.name!r}: {why}")

    def read(self) -> Skeleton:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"a skeleton needs a name, a text, got {self.name!r}")
        for item in self.items(self.d.get("include", []), "include"):
            self.include(item)
        if "landmarks" in self.d:
            self.landmarks += self.names(self.d["landmarks"], "landmarks")
        elif "include" not in self.d:
            raise self.error("landmarks are missing: all their names, in the order of the output")
        self.place = {name: i for i, name in enumerate(self.landmarks)}
        if len(self.place) < len(self.landmarks):
            twice = next(name for i, name in enumerate(self.landmarks) if self.place[name] != i)
            raise self.error(f"landmarks: {twice!r} is there twice")
        self.read_parts()
        for pair in self.items(self.d.get("pairs", []), "pairs"):
            self.pair(self.names(pair, "pairs"))
        for chain in self.items(self.d.get("edges", []), "edges"):
            line = self.indices(self.names(chain, "edges"), "edges")
            if len(line) < 2:
                raise self.error(f"edges: {chain!r} is no edge; it takes two or more landmarks")
            self.edges += pairwise(line)
        for group, members in self.table(self.d.get("groups", {}), "groups").items():
            if group in self.groups:
                raise self.error(f"groups: {group!r} is already a group of an included skeleton")
            self.groups[group] = tuple(self.names(members, f"groups: {group}"))
        default = self.d.get("default", next(iter(self.parts)) if len(self.parts) == 1 else "all")
        if not isinstance(default, str):
            raise self.error(f"default: it takes the name of a part or group, got {default!r}")
        parts, pairs, edges = tuple(self.parts.values()), tuple(self.pairs), tuple(self.edges)
        return Skeleton(self.name, tuple(self.landmarks), pairs, parts, self.groups, edges, default, self.suite())

    def suite(self) -> str | None:
        """Its own; where it is made of nothing but included skeletons that have one in common, theirs."""
        shared = self.suites.pop() if len(self.suites) == 1 and "landmarks" not in self.d else None
        name = self.d.get("suite", shared)
        if name is not None and not isinstance(name, str):
            raise self.error(f"suite: it takes the name of a suite, got {name!r}")
        return name

    def read_parts(self) -> None:
        own = self.table(self.d.get("parts", {}), "parts")
        everything = tuple(range(len(self.landmarks)))
        declared = [key for key in ("lengths", "spans") if key in self.d]
        if declared and own:
            raise self.error(f"{declared[0]} belong to the parts where there are parts")
        if declared or not (own or self.parts):
            lengths, spans = (self.lengths(self.d.get(key, []), key) for key in ("lengths", "spans"))
            self.parts = {"body": Part("body", everything, lengths, spans)}
        elif own:
            self.parts = {}
            for name, value in own.items():
                where = f"part {name}"
                table = self.table(value, where, "landmarks", "lengths", "spans")
                if "landmarks" in table:
                    chosen = self.indices(self.names(table["landmarks"], where), where)
                elif len(own) == 1:
                    chosen = everything
                else:
                    raise self.error(f"{where} needs landmarks; only a single part can leave them out")
                lengths, spans = (self.lengths(table.get(key, []), where) for key in ("lengths", "spans"))
                self.parts[name] = Part(name, chosen, lengths, spans)

    def pair(self, names: Sequence[str]) -> None:
        if len(names) != 2:
            raise self.error(f"pairs: {list(names)} is no pair; it takes a left and a right name")
        a, b = names
        if a in self.parts and b in self.parts:
            left, right = self.parts[a].landmarks, self.parts[b].landmarks
            if len(left) != len(right):
                raise self.error(
                    f"pairs: parts {a} and {b} have {len(left)} and {len(right)} landmarks; "
                    "paired parts have as many, in the same order"
                )
            self.pairs += zip(left, right, strict=True)
        else:
            left_index, right_index = self.indices(names, "pairs")
            self.pairs.append((left_index, right_index))

    def include(self, item: object) -> None:
        table = self.table({"skeleton": item} if isinstance(item, str) else item, "include", "skeleton", "as")
        source, alias = table.get("skeleton"), table.get("as", "")
        if not isinstance(source, str) or not isinstance(alias, str):
            raise self.error('include: it takes {skeleton = "hand-21", as = "left_hand"}, or a name alone')
        if source.endswith(".toml"):
            other = _from_toml(self.folder / source, self.within)
        else:
            try:
                other = _built_in(source)
            except KeyError as error:
                raise self.error(f"include: {error}") from None
        self.suites.add(other.suite)
        dot = f"{alias}." if alias else ""
        part_names = {p.name: alias if alias and len(other.parts) == 1 else dot + p.name for p in other.parts}
        start = len(self.landmarks)

        def shifted(indices: Iterable[int]) -> tuple[int, ...]:
            return tuple(start + i for i in indices)

        self.landmarks += [dot + name for name in other.landmarks]
        self.pairs += [(start + a, start + b) for a, b in other.pairs]
        self.edges += [(start + a, start + b) for a, b in other.edges]
        for part in other.parts:
            name = part_names[part.name]
            if name in self.parts:
                raise self.error(f"include: there are two parts {name!r}; tell them apart with `as`")
            lengths, spans = (tuple((shifted(a), shifted(b)) for a, b in ends) for ends in (part.lengths, part.spans))
            self.parts[name] = Part(name, shifted(part.landmarks), lengths, spans)
        for group, members in other.groups.items():
            if dot + group in self.groups:
                raise self.error(f"include: there are two groups {dot + group!r}; tell them apart with `as`")
            self.groups[dot + group] = tuple(part_names.get(m, dot + m) for m in members)

    # -- values with their types checked

    def table(self, value: object, where: str, *keys: str) -> Mapping[str, object]:
        """A table, of these keys only where there are some."""
        if not isinstance(value, Mapping):
            raise self.error(f"{where}: it takes a table, got {value!r}")
        if keys and (strange := [key for key in value if key not in keys]):
            raise self.error(f"{where}: unknown key {strange[0]!r}; there are: {', '.join(keys)}")
        return value

    def items(self, value: object, where: str) -> Sequence[object]:
        if not isinstance(value, list | tuple):
            raise self.error(f"{where}: it takes a list, got {value!r}")
        return value

    def names(self, value: object, where: str) -> list[str]:
        """A list of names, with `face.{0..3}` written out."""
        names: list[str] = []
        for item in self.items(value, where):
            if not isinstance(item, str):
                raise self.error(f"{where}: {item!r} is no name")
            span = _RANGE.search(item)
            if span is None:
                names.append(item)
                continue
            first, last = int(span[1]), int(span[2])
            if not first <= last < first + 100_000:
                raise self.error(f"{where}: the range in {item!r} runs backwards or is too long")
            names += [f"{item[: span.start()]}{i}{item[span.end() :]}" for i in range(first, last + 1)]
        return names

    def indices(self, names: Collection[str], where: str) -> tuple[int, ...]:
        for name in names:
            if name not in self.place:
                raise self.error(f"{where}: {name!r} is not a landmark{nearest(name, self.place)}")
        return tuple(self.place[name] for name in names)

    def lengths(self, value: object, where: str) -> tuple[Length, ...]:
        pairs: list[Length] = []
        for item in self.items(value, where):
            if not isinstance(item, list | tuple) or len(item) != 2:
                raise self.error(
                    f'{where}: lengths take pairs of ends, e.g. [["left_shoulder", "right_shoulder"]], got {item!r}'
                )
            a, b = (self.indices(self.names([end] if isinstance(end, str) else end, where), where) for end in item)
            pairs.append((a, b))
        return tuple(pairs)
