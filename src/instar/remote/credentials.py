"""Keys of AWS from the files that its own tools write; the other clouds' files are read by obstore itself."""

from __future__ import annotations

import configparser
import os
from importlib.util import find_spec
from pathlib import Path

from instar.secrets import keep_secret

_KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}
_SETTINGS = {"region": "region", "endpoint_url": "endpoint"}
_VARIABLES = {
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "endpoint_url": ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"),
}
"""What the environment says comes before what a file says."""


def aws_settings() -> dict[str, object]:
    """What the profile of the user says and the environment does not: keys, region, endpoint.

    A profile without keys of its own (single sign-on, a role) is left to boto3, where that is installed.
    """
    profile = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE") or "default"
    shared = _section("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile)
    config = _section("AWS_CONFIG_FILE", "config", profile if profile == "default" else f"profile {profile}")
    settings: dict[str, object] = {
        option: config[name]
        for name, option in _SETTINGS.items()
        if name in config and not any(os.environ.get(variable) for variable in _VARIABLES[name])
    }
    if os.environ.get("AWS_ACCESS_KEY_ID") or os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
        return settings
    profiles = {**config, **shared}
    keys = {option: profiles[name] for name, option in _KEYS.items() if name in profiles}
    for name, value in keys.items():
        keep_secret(f"AWS_{name.upper()}", value)
    if not keys and config and find_spec("boto3") is not None:
        from obstore.auth.boto3 import Boto3CredentialProvider

        return {**settings, "credential_provider": Boto3CredentialProvider()}
    return {**settings, **keys}


def _section(variable: str, name: str, section: str) -> dict[str, str]:
    file = Path(os.environ.get(variable) or Path.home() / ".aws" / name).expanduser()
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(file, "utf-8")
    except (configparser.Error, UnicodeDecodeError, OSError):
        return {}  # a file that is none of AWS's; who needs its keys is refused by the server
    return dict(parser[section]) if parser.has_section(section) else {}
