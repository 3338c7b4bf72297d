"""Runs that are disturbed at random end in exactly the undisturbed result, or are refused with a reason.

`python -m studies.ledger` is the long version; `calls.py` says what the ledger is, and what it proves.
"""
