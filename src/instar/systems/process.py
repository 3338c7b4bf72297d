"""A program in any language as a system, spoken to in JSON lines: `process("node detector.js")`.

The protocol is described in docs/process-systems.md. Nothing that a program says is ever evaluated, and no shell
is between.
"""

from __future__ import annotations

import json
import shlex
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from instar.case import Input
from instar.json_values import as_bool, as_object, as_text, one_of, short, whole_number
from instar.outputs import Output, output_kind, output_kinds
from instar.secrets import environment_secrets
from instar.spelling import Parameter
from instar.systems.child import Child, Crashed, TimedOut, quoted
from instar.systems.identity import Identity
from instar.systems.system import AnotherVersion, System, SystemFamily, fingerprint_of
from instar.systems.weights import Files

_ADAPTER = "1"
"""Part of every fingerprint here; changes when the adapter's answers do."""
_PROTOCOL = 1
_STARTS = 3
_GREETING = '{"instar": 1, "kind": "poses", "deterministic": true}'
_GREETING_FIELDS = {
    **dict.fromkeys(("instar", "kind", "deterministic"), True),
    **dict.fromkeys(("takes", "seedable", "version"), False),
}
_ANSWER_FIELDS = {"id": True, "output": False, "error": False}


# --- what the program says -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Greeting:
    """What a program says of itself, once, before anything else."""

    kind: str
    takes: str
    deterministic: bool
    seedable: bool
    version: str


@dataclass(frozen=True, slots=True)
class _Reply:
    """A line that was understood; `strange` says what number in it is none that is read."""

    content: dict[str, object]
    strange: str


def _heard(line: bytes) -> _Reply | None:
    """A JSON object, or None."""
    strange: list[str] = []

    def note(constant: str) -> float:
        strange.append(f"{constant}, which is not JSON; an absent landmark is null")
        return 0.0

    def read(digits: str) -> int:
        try:
            return whole_number(digits)
        except ValueError as error:
            strange.append(f"too long a number: {error}")
            return 0

    try:
        content = json.loads(line.decode("utf-8-sig"), parse_constant=note, parse_int=read)
    except (ValueError, RecursionError):
        return None
    return _Reply(content, strange[0] if strange else "") if isinstance(content, dict) else None


def _reply(line: bytes, number: int) -> _Reply:
    reply = _heard(line)
    if reply is None:
        raise ValueError(
            f"the program wrote {quoted(line)} to stdout, which is no answer; stdout is for answers "
            "alone, print logs to stderr"
        )
    if reply.content.get("id") != number:
        raise ValueError(
            f"the answer has id {short(environment_secrets().without(reply.content.get('id')))}, the request has "
            f"{number}: {quoted(line)}"
        )
    return reply


def _greeting(line: bytes) -> _Greeting:
    reply = _heard(line)
    if reply is None or reply.strange or "instar" not in reply.content:
        raise ValueError(
            f"the program wrote {quoted(line)} to stdout; its first line is a greeting such as "
            f"{_GREETING}, and logs are printed to stderr"
        )
    fields = as_object(environment_secrets().without(reply.content), "a greeting", _GREETING_FIELDS)
    if fields["instar"] != _PROTOCOL:
        raise ValueError(
            f"the program speaks version {short(fields['instar'])} of the protocol, this Instar speaks {_PROTOCOL}"
        )
    kinds = output_kinds()
    kind = one_of(fields["kind"], "kind", tuple(kinds))
    takes = one_of(
        fields["takes"] or kinds[kind].answers, "takes", tuple(dict.fromkeys(one.answers for one in kinds.values()))
    )
    deterministic = as_bool(fields["deterministic"], "deterministic")
    seedable = deterministic if fields["seedable"] is None else as_bool(fields["seedable"], "seedable")
    return _Greeting(kind, takes, deterministic, seedable, as_text(fields["version"] or "", "version"))


# --- the system ------------------------------------------------------------------------------------


class _Program:
    """A program that is started again when it has died, as long as it is the same."""

    def __init__(self, argv: Sequence[str], timeout: float, start_timeout: float) -> None:
        # the files that a command names, also as `--weights=FILE`
        self.files = Files(path for word in argv for path in (word, word.partition("=")[2]))
        self._argv, self._timeout, self._start_timeout = argv, timeout, start_timeout
        self._lock = threading.Lock()
        self._requests = 0
        self._given_up = ""
        self._last: tuple[Input, bytes] | None = None
        self._child: Child | None
        self._child, self.greeting = self._started()
        if changed := self.files.changed():
            self.close()
            raise ValueError(f"{changed} changed while the program was started; start again")

    def predict(self, inputs: Sequence[Input], seeds: Sequence[int]) -> list[Output]:
        with self._lock:
            return [self._answer(input, seed) for input, seed in zip(inputs, seeds, strict=True)]

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def _answer(self, input: Input, seed: int) -> Output:
        child = self._running()
        self._requests += 1
        request = b'{"id": %d, "seed": %d, "input": %s}\n' % (self._requests, seed, self._encoded(input))
        try:
            reply = _reply(child.exchange(request, self._timeout, "answer"), self._requests)
        except BaseException:  # also when the user interrupts: the answer would be heard as that to the next input
            child.kill()
            self._child = None
            raise
        # From here on program and adapter are in step: a bad answer does not cost loading the model again.
        if reply.strange:
            raise ValueError(f"the answer holds {reply.strange}")
        try:
            return self._output(reply.content, input)
        except ValueError:
            # A message quotes the beginning of a value, where half of a secret would not be recognised any more.
            clean = environment_secrets().without(reply.content)
            if clean == reply.content:
                raise
            self._output(clean, input)
            raise ValueError(f"the answer holds a secret, and no {self.greeting.kind}") from None

    def _output(self, content: object, input: Input) -> Output:
        answer = as_object(content, "an answer", _ANSWER_FIELDS)
        if answer["error"] is not None:
            raise RuntimeError(f"the program says: {as_text(answer['error'], 'error')}")
        kind = output_kind(self.greeting.kind)
        return kind.from_json(as_object(answer["output"], kind.kind, kind.json_fields), input.size)

    def _encoded(self, input: Input) -> bytes:
        """Repeats of a prediction have the same input: it is encoded once."""
        if self._last is None or self._last[0] is not input:
            self._last = input, input.to_json()
        return self._last[1]

    def _running(self) -> Child:
        if self._given_up:
            raise Crashed(self._given_up)
        if self._child is None:
            self._child = self._started_again()
        return self._child

    def _started(self) -> tuple[Child, _Greeting]:
        child = Child(self._argv)
        try:
            return child, _greeting(child.exchange(b"", self._start_timeout, "greeting"))
        except BaseException:
            child.kill()
            raise

    def _started_again(self) -> Child:
        """A new one, in the few tries that it has: then no input waits for it any more."""
        why = ""
        for _ in range(_STARTS):
            try:
                child, greeting = self._started()
            except (Crashed, TimedOut, ValueError, OSError) as error:
                why = str(error)
                continue
            changed = self.files.changed()
            if greeting == self.greeting and not changed:
                return child
            child.kill()
            raise AnotherVersion(
                f"{changed} changed, and the program was started again with it"
                if changed
                else f"the program was started again and greeted with {greeting}, before with {self.greeting}"
            )
        self._given_up = f"the program was there once, but failed to start again {_STARTS} times in a row: {why}"
        raise Crashed(self._given_up)


def _process(name: str, *, command: str, version: str, timeout: float, start_timeout: float) -> System:
    argv = _words(name, command)
    try:
        program = _Program(argv, timeout, start_timeout)
    except (Crashed, TimedOut, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    greeting = program.greeting
    fingerprint = fingerprint_of(
        "process", _ADAPTER, *argv, *filter(None, program.files.hashes.values()), version, greeting
    )
    return System(
        name,
        greeting.kind,
        program.predict,
        fingerprint,
        deterministic=greeting.deterministic,
        seedable=greeting.seedable,
        takes=greeting.takes,
        close=program.close,
        identity=Identity(
            besides=("its greeting",),
            unwatched=("other files it reads are not watched: name them in the command, or change `version`",),
        ),
    )


def _words(name: str, command: str) -> list[str]:
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise ValueError(f"{name}: the command cannot be read: {error}") from None
    if not argv:
        raise ValueError(f'{name}: the command is empty; it is written process("python3 my_model.py")')
    if shutil.which(argv[0]) is None:
        if Path(argv[0]).is_file() and "/" in argv[0]:
            raise PermissionError(
                f"{name}: {argv[0]} is not executable; name what runs it first, as in "
                f'process("python3 {argv[0]}"), or make it executable'
            )
        raise FileNotFoundError(
            f"{name}: there is no program {argv[0]!r} on the PATH or in {Path.cwd()}; install it, "
            "or give its path. No shell reads the command: ~, $NAME and pipes mean nothing in it"
        )
    return argv


# fmt: off
FAMILIES = (
    SystemFamily("process", "any", _process, (
        Parameter("command", "text", help="the program and its arguments; no shell reads it"),
        Parameter("version", "text", "", help="change it when the program's answers change"),
        Parameter("timeout", "float", 30, low=0, open_low=True, help="seconds that one answer may take"),
        Parameter("start_timeout", "float", 120, low=0, open_low=True, help="seconds until the program's greeting"),
    ), help="A program in any language, spoken to in JSON lines; it says itself what it answers with."),
)
# fmt: on
