"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def atomic_write(path: Path | str) -> Iterator[Path]:
    """Temporary path to write to; when the block ends, the file there replaces `path`.

    A full disk, an error or an interruption leaves the old file unchanged and no partial file. Readers see the old file
    or the new one. The target of a symbolic link is replaced. Permissions are kept. Folders and other special files are
    refused, and so are write-protected ones.
    """
    target = Path(os.path.realpath(path))
    old = target.stat() if target.exists() else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise ValueError(f"path must name a file; got {path}. Pass the name of a new file or of one to replace.")
    if old is not None and not os.access(target, os.W_OK):
        # replacing needs permission of the folder alone: it would silently replace a protected file
        raise PermissionError(f"path must name a file that may be written; got {path}. Change its permissions first.")
    # the name may be as long as the file system allows, so the temporary one is cut
    beside = target.with_name(f".{target.stem[:40]}-{secrets.token_hex(8)}{target.suffix}")
    try:
        yield beside
        with beside.open("rb+") as written:
            os.fsync(written.fileno())
        if old is not None:
            beside.chmod(stat.S_IMODE(old.st_mode))
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):  # the first error is the one to report
            beside.unlink(missing_ok=True)
        raise
