"""signature.json of a result: what its campaign was when it began, signed by the account."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from netbench.result_files import SIGNATURE, SignatureFile
from netbench.signing import Key, digest, key_file

SIGNED = ("campaign.yaml", "plan.json")
"""The files that the signature covers."""
CHANGED = "was changed after the campaign began"


def sign(key: Key | None, files: Mapping[str, bytes]) -> SignatureFile:
    """The signature of a new result, by the contents of the SIGNED files. Without a key it says
    only what they were.
    """
    result = secrets.token_hex(16)
    campaign, plan = (digest(files[name]) for name in SIGNED)
    mac = _mac(key, result, [campaign, plan]) if key else ""
    return SignatureFile(result, campaign, plan, key.name if key else "", mac)


def why_not_as_begun(
    signature: SignatureFile | None, key: Key | None, files: Mapping[str, bytes]
) -> list[str]:
    """What of a result is not known to be as it was when its campaign began: an entry for each
    file, which begins with its name. None: the campaign may be acted on.
    """
    if signature is None:
        return [f"{SIGNATURE} is missing: nothing says who began this campaign"]
    if not signature.key:
        return [f"{SIGNATURE}: the account that began this campaign could keep no key"]
    if key is None or key.name != signature.key:
        present = f"{key_file()} is key {key.name}" if key else f"there is no {key_file()}"
        return [
            f"{SIGNATURE}: signed with key {signature.key}, and {present}: this campaign was begun"
            " by another account, or on another machine"
        ]
    digests = [signature.campaign, signature.plan]
    if _mac(key, signature.id, digests) != signature.mac:
        return [f"{SIGNATURE} {CHANGED}"]
    present_digests = [digest(files[name]) for name in SIGNED]
    return [
        f"{name} {CHANGED}"
        for name, then, now in zip(SIGNED, digests, present_digests, strict=True)
        if then != now
    ]


def _mac(key: Key, result: str, digests: list[str]) -> str:
    return key.sign(b"result", *(part.encode() for part in (result, *digests)))
