from tests.remembered import follow_ups_made_once  # noqa: F401
