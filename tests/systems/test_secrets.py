"""A secret that comes back in an answer or an error is not stored, however it is written."""

from __future__ import annotations

import base64
import html
import json
import urllib.parse
from pathlib import Path

import numpy as np
import pytest

import instar
from instar.json_values import short
from instar.outputs.arrays import floats
from instar.secrets import Secrets, without_secrets
from tests.toys import write_scenes

SECRET = "sk-Live/abc+12345=x"
WRITTEN = {
    "as it is": SECRET,
    "in capitals": SECRET.upper(),
    "as JSON": json.dumps(f'"{SECRET}'),
    "as JSON in JSON": json.dumps(json.dumps(SECRET)),
    "as JSON that escapes every sign": "".join(f"\\u{ord(sign):04X}" for sign in SECRET),
    "as Python writes bytes": "".join(f"\\x{ord(sign):02x}" for sign in SECRET),
    "in an address": urllib.parse.quote(SECRET, safe=""),
    "in an address in an address": urllib.parse.quote(urllib.parse.quote(SECRET, safe=""), safe=""),
    "in an address, every sign": "".join(f"%{ord(sign):02X}" for sign in SECRET),
    "in HTML": "".join(f"&#{ord(sign)};" for sign in SECRET),
    "in base64": base64.b64encode(SECRET.encode()).decode(),
    "in base64 for addresses": base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
    "in base64 with a name before it": base64.b64encode(f"me:{SECRET}".encode()).decode(),
    "in base64 with a longer name before it": base64.b64encode(f"user:{SECRET}!".encode()).decode(),
    "in hexadecimal": SECRET.encode().hex(),
}


@pytest.mark.parametrize("how", WRITTEN)
def test_a_secret_is_recognised_however_it_is_written(how: str) -> None:
    secrets = Secrets({"MY_KEY": SECRET, "OTHER": "something-else"})
    clean = secrets.scrubbed(f"401: {WRITTEN[how]} is no key of ours")
    assert "${MY_KEY}" in clean and clean.endswith("is no key of ours")
    decoded = urllib.parse.unquote(urllib.parse.unquote(html.unescape(clean)))
    assert "abc" not in decoded and "12345" not in decoded
    assert secrets.held_in(WRITTEN[how]) == "MY_KEY"


def test_other_texts_stay_as_they_are() -> None:
    secrets = Secrets({"MY_KEY": SECRET})
    for text in ("a dog on a bench", "sk-Live/abc+1234", base64.b64encode(b"another text altogether").decode()):
        assert secrets.scrubbed(text) == text and secrets.held_in(text) is None


@instar.declare(kind="poses")
def leaking(pixels: np.ndarray) -> None:
    raise RuntimeError(f"Incorrect API key provided: {SECRET}, or {base64.b64encode(SECRET.encode()).decode()}")


def test_what_a_system_says_when_it_fails_is_stored_without_the_secrets_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of a service that runs in our process, or a program: what it raises is not ours to keep as it is."""
    monkeypatch.setenv("CAPTION_API_KEY", SECRET)
    photos = write_scenes(tmp_path / "photos", 1)
    run = instar.run("tests.systems.test_secrets:leaking", "mirror(h)", photos, out=tmp_path / "run", workers=0)
    messages = run.predictions()["message"].drop_nulls().to_list()
    assert messages and all("${CAPTION_API_KEY}, or ${CAPTION_API_KEY}" in message for message in messages)


@pytest.mark.parametrize("place", range(40, 90, 7))
def test_no_half_of_a_secret_is_left_where_a_quotation_is_cut(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong answer of a function is quoted at its beginning; half of a secret is not recognised any more."""
    monkeypatch.setenv("CAPTION_API_KEY", SECRET)
    answer = "x" * place + SECRET
    with pytest.raises(ValueError, match="scores are numbers") as caught:
        floats([answer], "scores")
    quotation, _, _ = str(caught.value).partition("(could not")  # numpy's own words are scrubbed as a whole, later
    assert SECRET[:6] not in quotation and SECRET[:6] not in short(answer)


def test_short_or_ordinary_values_of_the_environment_are_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SORT_KEY", "name")
    monkeypatch.setenv("FAVOURITE_FOLDER", "holidays-2024")
    assert without_secrets("the name of holidays-2024") == "the name of holidays-2024"
