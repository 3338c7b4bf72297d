"""Reading, writing, choosing and mapping; mistakes are told with what was perhaps meant."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.skeleton import Part, Skeleton, skeleton, skeletons

STICK = """
landmarks = ["nose", "left_hand", "right_hand", "left_foot", "right_foot"]
pairs = [["left_hand", "right_hand"], ["left_foot", "right_foot"]]
lengths = [["left_hand", "right_hand"], ["nose", ["left_foot", "right_foot"]]]
edges = [["left_hand", "nose", "right_hand"]]
[groups]
feet = ["left_foot", "right_foot"]
"""


def written(folder: Path, text: str, *, name: str = "stick") -> str:
    path = folder / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def as_toml(s: Skeleton) -> str:
    """JSON's lists and texts are TOML's."""
    d = s.to_dict()
    parts, groups = d.pop("parts"), d.pop("groups")
    lines = [f"{key} = {json.dumps(value)}" for key, value in d.items()]
    for name, part in parts.items():  # type: ignore[attr-defined]
        lines += [f"[parts.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in part.items())]
    lines += ["[groups]", *(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in groups.items())]  # type: ignore[attr-defined]
    return "\n".join(lines)


# -- reading


def test_a_skeleton_of_ones_own(tmp_path: Path) -> None:
    s = skeleton(written(tmp_path, STICK))
    assert s.name == "stick"
    assert s.pairs == ((1, 2), (3, 4))
    assert s.parts == (Part("body", (0, 1, 2, 3, 4), (((1,), (2,)), ((0,), (3, 4)))),)
    assert s.edges == ((1, 0), (0, 2))
    assert dict(s.groups) == {"feet": ("left_foot", "right_foot")}
    assert s.default == "body"
    assert s.swap.tolist() == [0, 2, 1, 4, 3]


def test_ranges_are_written_out() -> None:
    s = Skeleton.from_dict({"name": "x", "landmarks": ["p{8..10}", "q"], "lengths": [["p8", "q"]]})
    assert s.landmarks == ("p8", "p9", "p10", "q")


def test_include(tmp_path: Path) -> None:
    stick = written(tmp_path, STICK)
    s = skeleton(
        written(
            tmp_path,
            f"""
        include = [{{skeleton = "{Path(stick).name}", as = "a"}}, {{skeleton = "{stick}", as = "b"}}]
        pairs = []
        [groups]
        everyone = ["a", "b"]
    """,
            name="two",
        )
    )
    assert s.landmarks[4:6] == ("a.right_foot", "b.nose")
    assert [part.name for part in s.parts] == ["a", "b"]
    assert s.parts[1].lengths == (((6,), (7,)), ((5,), (8, 9)))
    assert s.swap.tolist() == [0, 2, 1, 4, 3, 5, 7, 6, 9, 8]
    assert s.edges == ((1, 0), (0, 2), (6, 5), (5, 7))
    assert dict(s.select("b.feet, everyone")) == dict(s.select("all"))
    assert s.default == "all"


def test_include_of_several_parts_keeps_them_apart() -> None:
    s = Skeleton.from_dict(
        {"name": "pair", "include": [{"skeleton": "mediapipe-holistic-468", "as": who} for who in "ab"]}
    )
    assert [part.name for part in s.parts] == [
        f"{who}.{part}" for who in "ab" for part in ("body", "left_hand", "right_hand", "face")
    ]
    assert [part.name for part, _ in s.select("b.hands")] == ["b.left_hand", "b.right_hand"]


def test_a_file_that_includes_itself(tmp_path: Path) -> None:
    path = written(tmp_path, 'include = ["stick.toml"]')
    with pytest.raises(ValueError, match="includes itself"):
        skeleton(path)


# -- writing


@pytest.mark.parametrize("name", skeletons())
def test_round_trips(name: str, tmp_path: Path) -> None:
    s = skeleton(name)
    through_json = Skeleton.from_dict(json.loads(json.dumps(s.to_dict())))
    sorted_keys = Skeleton.from_dict(json.loads(json.dumps(s.to_dict(), sort_keys=True)))
    through_toml = skeleton(written(tmp_path, as_toml(s)))
    for back in (through_json, sorted_keys, through_toml, pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        assert back == s
        assert hash(back) == hash(s)
        assert back.to_dict() == s.to_dict()
        assert list(back.groups) == list(s.groups)


def test_different_ones_differ() -> None:
    assert len({skeleton(name) for name in skeletons()}) == len(skeletons())
    d = skeleton("coco-17").to_dict()
    assert Skeleton.from_dict({**d, "groups": {}}) != skeleton("coco-17")


def test_nothing_can_be_changed() -> None:
    s = skeleton("coco-17")
    with pytest.raises(TypeError):
        s.groups["mine"] = ("nose",)  # type: ignore[index]
    with pytest.raises(ValueError):
        s.swap[0] = 1
    with pytest.raises(AttributeError):
        s.default = "head"  # type: ignore[misc]


# -- choosing


def test_select() -> None:
    s = skeleton("mediapipe-holistic")

    def chosen(landmarks: str) -> dict[str, tuple[int, ...]]:
        return {part.name: indices for part, indices in s.select(landmarks)}

    assert chosen("body") == {"body": tuple(range(33))}
    assert chosen("nose") == {"body": (0,)}
    assert chosen("right_hand.wrist , nose,left_hand.wrist") == {"body": (0,), "left_hand": (33,), "right_hand": (54,)}
    assert chosen("torso, left_hip") == {"body": (11, 12, 23, 24)}
    assert chosen("all") == {part.name: part.landmarks for part in s.parts}
    assert chosen(s.default) == chosen("body")


@given(st.lists(st.sampled_from(skeleton("mediapipe-holistic-468").landmarks), min_size=1, max_size=8))
def test_select_gives_what_was_named(names: list[str]) -> None:
    s = skeleton("mediapipe-holistic-468")
    found = [i for _, chosen in s.select(", ".join(names)) for i in chosen]
    assert found == sorted({s.index(name) for name in names})


def test_index_and_its_mistakes() -> None:
    s = skeleton("mediapipe-holistic")
    assert s.index("face.0") == 75
    with pytest.raises(KeyError, match="unknown landmark 'left_sholder'; did you mean 'left_shoulder'"):
        s.index("left_sholder")


@pytest.mark.parametrize(
    ("landmarks", "message"),
    [
        ("left_hnd", "unknown landmark group 'left_hnd'; did you mean 'left_hand'"),
        ("body, hends", "unknown landmark group 'hends'; did you mean 'hands'"),
        ("qqq", "There are: all, body, left_hand, right_hand, face, head,"),
        ("", "unknown landmark group ''"),
        ("body,", "unknown landmark group ''"),
    ],
)
def test_select_mistakes(landmarks: str, message: str) -> None:
    with pytest.raises(KeyError) as error:
        skeleton("mediapipe-holistic").select(landmarks)
    assert message in str(error.value)


def test_unknown_skeleton() -> None:
    with pytest.raises(KeyError, match="unknown skeleton 'coco17'; did you mean 'coco-17'"):
        skeleton("coco17")
    with pytest.raises(FileNotFoundError, match=r"no skeleton file nowhere/mine\.toml"):
        skeleton("nowhere/mine.toml")


# -- mapping


def test_mapping_without_anything_in_common() -> None:
    mine, theirs = skeleton("hand-21").mapping(skeleton("coco-17"))
    assert mine.shape == theirs.shape == (0,)
    assert mine.dtype == theirs.dtype == np.intp


@pytest.mark.parametrize("a", skeletons())
@pytest.mark.parametrize("b", skeletons())
def test_mapping_joins_equal_names_and_swaps_alike(a: str, b: str) -> None:
    one, two = skeleton(a), skeleton(b)
    mine, theirs = one.mapping(two)
    assert [one.landmarks[i] for i in mine] == [two.landmarks[i] for i in theirs]
    back = dict(zip(theirs.tolist(), mine.tolist(), strict=True))
    forth = two.mapping(one)
    assert dict(zip(forth[0].tolist(), forth[1].tolist(), strict=True)) == back
    # Mirroring and then renaming is renaming and then mirroring.
    assert all(back[int(two.swap[j])] == one.swap[i] for i, j in zip(mine, theirs, strict=True))


# -- mistakes in files


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '["left_hand", "right_hand"], ["left_foot"',
            '["left_hnd", "right_hand"], ["left_foot"',
            "pairs: 'left_hnd' is not a landmark; did you mean 'left_hand'",
        ),
        (
            '["left_foot", "right_foot"]]\nlengths',
            '["left_foot", "right_hand"]]\nlengths',
            "pairs: 'right_hand' is paired twice, with 'left_hand' and 'left_foot'",
        ),
        ('["left_foot", "right_foot"]]\nlengths', '["nose", "nose"]]\nlengths', "'nose' is paired with itself"),
        ('["left_foot", "right_foot"]]\nlengths', '["nose"]]\nlengths', "is no pair"),
        (
            '"nose", "left_hand", "right_hand", "left',
            '"nose", "nose", "left_hand", "right_hand", "left',
            "landmarks: 'nose' is there twice",
        ),
        ("landmarks = [", "landmark = [", "unknown key 'landmark'; did you mean 'landmarks'"),
        (
            'lengths = [["left_hand", "right_hand"], ["nose", ["left_foot", "right_foot"]]]',
            'lengths = ["left_hand", "right_hand"]',
            "lengths take pairs of ends",
        ),
        ('["nose", ["left_foot"', '["noze", ["left_foot"', "lengths: 'noze' is not a landmark; did you mean"),
        ('["nose", ["left_foot", "right_foot"]]', '["nose", ["nose"]]', "both ends are nose"),
        ('["nose", ["left_foot", "right_foot"]]', '["nose", []]', "an end has no landmarks"),
        ('["left_hand", "nose", "right_hand"]', '["left_hand"]', "is no edge"),
        ('["left_hand", "nose", "right_hand"]', '["nose", "nose"]', "from 'nose' to itself"),
        ('["left_hand", "nose", "right_hand"]', '["left_hand", "chin"]', "edges: 'chin' is not a landmark"),
        ('feet = ["left_foot"', 'feet = ["left_fot"', "groups: feet: 'left_fot' is no landmark or part; did you"),
        ('feet = ["left_foot", "right_foot"]', "feet = []", "group feet is empty"),
        ("feet = [", "nose = [", "'nose' names a landmark and a group"),
        ("feet = [", "all = [", "'all' names the word for all landmarks and a group"),
        (
            '"nose", "left_hand", "right_hand", "left',
            '"1", "nose", "left_hand", "right_hand", "left',
            "'1' cannot be the name of a landmark",
        ),
        ("[groups]", 'default = "legs"\n[groups]', "default: unknown landmark group 'legs'"),
        ("[groups]", "default = 3\n[groups]", "default: it takes the name of a part or group, got 3"),
        ("[groups]", '[parts.head]\nlandmarks = ["nose"]\n[groups]', "lengths belong to the parts"),
        ("landmarks = [", "landmarks = 5 # [", "landmarks: it takes a list, got 5"),
        ("landmarks = [", 'landmarks = ["p{5..3}"] # [', "runs backwards"),
        ("landmarks = [", 'include = ["hnd-21"]\nlandmarks = [', "unknown skeleton 'hnd-21'; did you mean"),
        ("landmarks = [", "landmarks = = [", "is not TOML"),
    ],
)
def test_mistakes(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert STICK.count(old) == 1
    path = written(tmp_path, STICK.replace(old, new))
    with pytest.raises(ValueError) as error:
        skeleton(path)
    assert message in str(error.value)
    assert path in str(error.value)


PARTS = 'lengths = [["nose", "tail"]]'


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            f'[parts.a]\nlandmarks = ["nose"]\n{PARTS}\n[parts.b]\nlandmarks = ["nose", "tail"]\n{PARTS}',
            "'nose' is in parts a and b",
        ),
        (f'[parts.a]\nlandmarks = ["nose", "nose", "tail"]\n{PARTS}', "'nose' is in part a twice"),
        (f'[parts.a]\nlandmarks = ["nose"]\n{PARTS}', "tail in no part"),
        (
            f'[parts.a]\nlandmarks = ["nose", "tail"]\n{PARTS}\n[parts.b]\nlandmarks = []\n{PARTS}',
            "part b has no landmarks",
        ),
        (f'[parts.a]\n{PARTS}\n[parts.b]\nlandmarks = ["tail"]\n{PARTS}', "part a needs landmarks"),
        (f"[parts.nose]\n{PARTS}", "'nose' names a landmark and a part"),
        (f"[parts.a]\nedges = []\n{PARTS}", "part a: unknown key 'edges'"),
        ('[parts.a]\nspans = [["nose", "nose"]]', "both ends are nose"),
    ],
)
def test_mistakes_in_parts(parts: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as error:
        skeleton(written(tmp_path, f'landmarks = ["nose", "tail"]\n{parts}'))
    assert message in str(error.value)


def test_missing_landmarks_and_name() -> None:
    with pytest.raises(ValueError, match="landmarks are missing"):
        Skeleton.from_dict({"name": "x"})
    with pytest.raises(ValueError, match="needs a name"):
        Skeleton.from_dict({"landmarks": ["a", "b"], "lengths": [["a", "b"]]})


def test_paired_parts_must_match() -> None:
    with pytest.raises(ValueError, match="21 and 468 landmarks"):
        Skeleton.from_dict({"name": "x", "include": ["hand-21", "face-mesh-468"], "pairs": [["hand", "face"]]})


def test_two_of_the_same_need_names() -> None:
    with pytest.raises(ValueError, match="there are two parts 'hand'; tell them apart with `as`"):
        Skeleton.from_dict({"name": "x", "include": ["hand-21", "hand-21"]})


def test_built_directly_it_is_checked_too() -> None:
    body = Part("body", (0, 1), (((0,), (1,)),))
    assert Skeleton("x", ("a", "b"), ((0, 1),), (body,), {}, (), "body").swap.tolist() == [1, 0]
    with pytest.raises(ValueError, match="outside 0 to 1"):
        Skeleton("x", ("a", "b"), ((0, 2),), (body,), {}, (), "body")


def test_lengths_and_spans_may_be_left_out(tmp_path: Path) -> None:
    bare = skeleton(written(tmp_path, 'landmarks = ["nose", "tail"]'))
    assert (bare.parts[0].name, bare.parts[0].lengths, bare.parts[0].spans) == ("body", (), ())
    assert Skeleton.from_dict(bare.to_dict()) == bare
    wide = skeleton(written(tmp_path, 'landmarks = ["nose", "tail"]\nspans = [["nose", "tail"]]'))
    assert wide.parts[0].spans == (((0,), (1,)),)
    assert Skeleton.from_dict(wide.to_dict()) == wide
