"""Objects at addresses: in buckets (`s3://`, `gs://`, `az://`), on web servers (`https://`) and at Hugging Face (`hf://`).

Credentials come from the environment or the usual files, and go into requests alone. Every error names an address
without its query: that of a signed address is a key.
"""

from instar.remote.address import Address, address_in, bucket_and_key, in_bucket, joined, refuse_login
from instar.remote.errors import Advisory, Changed, Missing, TooLarge, Unreachable
from instar.remote.objects import Objects, Version, object_bytes, object_names, objects_in

# fmt: off
__all__ = [
    "Address", "Advisory", "Changed", "Missing", "Objects", "TooLarge", "Unreachable", "Version", "address_in",
    "bucket_and_key", "in_bucket", "joined", "object_bytes", "object_names", "objects_in", "refuse_login",
]
# fmt: on
