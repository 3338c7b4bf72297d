"""Spellings parse, round trip, and fail with words that help."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import instar
from instar.spelling import Call, Parameter, bind, parse_call, spell, spell_value, unknown
from instar.transforms import transformation

names = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)
scalars = st.one_of(
    st.integers(-(10**6), 10**6), st.floats(allow_nan=False, allow_infinity=False), names, st.text(max_size=12)
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)


def canonical(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(canonical(v) for v in value)
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


@given(names, st.lists(values, max_size=4), st.dictionaries(names, values, max_size=3))
def test_a_written_call_reads_back(name: str, args: list[object], kwargs: dict[str, object]) -> None:
    call = Call(name, tuple(args), tuple(kwargs.items()))  # type: ignore[arg-type]
    read = parse_call(spell_value(call))
    assert read.name == name
    assert read.args == canonical(call.args)
    assert dict(read.kwargs) == {key: canonical(value) for key, value in kwargs.items()}


@given(st.floats(0.001, 99))
def test_ids_are_canonical_for_any_number(gamma: float) -> None:
    one = transformation(f"gamma({gamma!r})")
    assert transformation(one.id).id == one.id
    assert transformation(f"gamma( gamma = {gamma!r} )").id == one.id


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("gamma(.50)", "gamma(0.5)"),
        ("gamma(2.0)", "gamma(2)"),
        ("mirror(axis=h)", "mirror(h)"),
        ("greyscale()", "greyscale"),
        ("rotation(5, centre=middle)", "rotation(5)"),
        ("rotation(5,centre=swapped)", "rotation(5, centre=swapped)"),
        ("gamma(0.5)|rotation(5)", "gamma(0.5) | rotation(5)"),
        ("colour_wheel(180, hair)", "filtered(colour_wheel(180), hair)"),
        ("filtered(gamma(.5) | greyscale, zone=skin)", "filtered(gamma(0.5) | greyscale, skin)"),
        ("mirror(h) => poses()", "mirror(h) => poses"),
        ("noise(16) => poses(draws=3, repeats=1)", "noise(16) => poses(draws=3)"),
        ("[gamma(.5), gamma(.25)] => correlation", "[gamma(0.5), gamma(0.25)] => correlation"),
        ("discs(n=1..21) => correlation(severity)", "discs(1..21) => correlation"),
    ],
)
def test_one_spelling_for_one_thing(given: str, canonical: str) -> None:
    assert instar.rule(given).id == canonical
    assert instar.rule(canonical).id == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gama(0.5)", "unknown transformation 'gama'; did you mean 'gamma'"),
        ("gamma(0)", "it takes a number from above 0 to 100"),
        ("gamma()", "needs gamma"),
        ("gamma(1, 2, 3)", "takes 1 parameter"),
        ("gamma(strength=1)", "has no parameter 'strength'"),
        ("mirror(sideways)", "one of h, v, both"),
        ("gamma(0.5", "expected ','"),
        ("gamma(0.5) &", "cannot read '&'"),
        ("429.toml", 'what begins with a digit and is no number stands in quotes: "429.toml";'),
        ("gamma(0.5) => pose", "did you mean 'poses'"),
        ("filtered(mirror(h), skin)", "takes photometric transformations"),
        ("noise(1..5)", "needs a relation over many cases"),
        ("noise(5..1) => correlation", "runs backwards"),
        ("gamma(gamma=1, gamma=2)", "given twice"),
        ("", "expected a name"),
    ],
)
def test_errors_say_what_was_given_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises((ValueError, KeyError)) as caught:
        instar.rule(text)
    assert message in str(caught.value)


def test_defaults_stay_out_of_the_id() -> None:
    parameters = (Parameter("a", "int"), Parameter("b", "float", 1), Parameter("c", "choice", "x", choices=("x", "y")))
    bound = bind(parse_call("f(3, c=y)"), parameters, what="thing")
    assert bound == {"a": 3, "b": 1, "c": "y"}
    assert spell("f", bound, parameters) == "f(3, c=y)"


DIGITS = "9" * 400
TOO_MUCH = {
    "a number of 400 digits": (f"gamma({DIGITS})", "a number has at most 40 digits"),
    "a fraction of 400 digits": (f"gamma(0.{DIGITS})", "a number has at most 40 digits"),
    "a range of a milliard levels": ("noise(1..1000000000) => correlation", "has more than 1,000 levels"),
    "a thousand brackets": (f"gamma({'(' * 1000}1{')' * 1000})", "more than 32 brackets lie in one another"),
    "a megabyte": ("gamma(0.5) | " * 80_000 + "gamma(0.5)", "letters, at most 10,000 are read"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_spelling_has_limits(what: str) -> None:
    """Rules come from run folders, suites and tables of others: an absurd one is an error of one line, at once."""
    text, why = TOO_MUCH[what]
    with pytest.raises(ValueError, match=why) as caught:
        instar.rule(text)
    assert len(str(caught.value)) < 500


def test_a_parameter_refuses_a_number_that_no_float_holds() -> None:
    """As TOML and Python can write it: 400 digits are a whole number to both."""
    with pytest.raises(ValueError, match=r"exponent=9+… is not allowed; it takes a number from 0 to 10") as caught:
        Parameter("exponent", "float", low=0, high=10).check(int(DIGITS), "gamma")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text", ["model(/tmp/x.onnx)", "model(./x.onnx)", "model('w/x.onnx')", "model(w/my model.onnx)"]
)
def test_a_path_without_quotes_is_told_so(text: str) -> None:
    with pytest.raises(ValueError, match=r'a path stands in double quotes: name\("folder/file"\)'):
        parse_call(text)


def test_a_name_that_two_things_have_is_named_once() -> None:
    assert str(unknown("rule or suite", "x", ["mirror(h)", "gamma(2)", "mirror(h)"])).endswith(
        "There are: gamma(2), mirror(h)."
    )
