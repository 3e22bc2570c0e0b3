"""Decision records in markdown (ADR, MADR, log4brains, Y-statements): read a folder of them and record it.

>>> from ranked_ledger.adr import import_folder, read_folder
>>> folder = read_folder("docs/decisions")                                      # doctest: +SKIP
>>> import_folder(ledger, folder).recorded                                      # doctest: +SKIP

Needs the extra `cli`: `pip install 'ranked-ledger[cli]'`.
"""

try:
    from ranked_ledger.adr.folder import read_folder
    from ranked_ledger.adr.importing import ImportReport, Refusal, import_folder
    from ranked_ledger.adr.records import AdrEdge, AdrFolder, AdrRecord, Reference, Remark
except ModuleNotFoundError as missing:
    if (missing.name or "").startswith("ranked_ledger"):
        raise
    raise ModuleNotFoundError(
        f"ranked_ledger.adr needs the package {missing.name}: pip install 'ranked-ledger[cli]'",
        name=missing.name,
    ) from None

__all__ = [
    "AdrEdge",
    "AdrFolder",
    "AdrRecord",
    "ImportReport",
    "Reference",
    "Refusal",
    "Remark",
    "import_folder",
    "read_folder",
]
