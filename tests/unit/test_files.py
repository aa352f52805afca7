"""A file is written whole or not at all, whatever fails on the way."""

import errno
import os
import re
import stat

import pytest

from spectralgp._basics.files import atomic_write

GOOD, NEW = b"a good picture", b"a better picture"


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "picture.png"
    path.write_bytes(GOOD)
    return path


def holds_only(folder, path, content):
    return [entry.name for entry in folder.iterdir()] == [path.name] and path.read_bytes() == content


@pytest.mark.parametrize("exists", [True, False])
def test_what_was_written_beside_takes_the_files_place(tmp_path, exists):
    path = tmp_path / "picture.png"
    if exists:
        path.write_bytes(GOOD)
    with atomic_write(path) as beside:
        assert beside.parent == tmp_path
        assert beside.suffix == ".png"  # by which matplotlib and others choose the format
        beside.write_bytes(NEW)
        assert path.exists() == exists
        assert not exists or path.read_bytes() == GOOD
    assert holds_only(tmp_path, path, NEW)


@pytest.mark.parametrize("error", [ValueError("no"), OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("written", [b"", b"half a pic"])
def test_whatever_is_raised_the_old_file_stays_and_nothing_else(picture, error, written):
    def write_and_fail(path):
        path.write_bytes(written)
        raise error

    with pytest.raises(type(error)) as caught, atomic_write(picture) as beside:
        write_and_fail(beside)
    assert caught.value is error
    assert holds_only(picture.parent, picture, GOOD)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_disk_that_fails_at_the_last_moment_leaves_the_old_file(picture, monkeypatch, step):
    def fail(*_):
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="the disk is broken"), atomic_write(picture) as beside:
        beside.write_bytes(NEW)
    assert holds_only(picture.parent, picture, GOOD)


def test_a_block_that_writes_nothing_leaves_the_old_file(picture):
    with pytest.raises(FileNotFoundError), atomic_write(picture):
        pass
    assert holds_only(picture.parent, picture, GOOD)


def test_two_writers_do_not_meet(picture):
    with atomic_write(picture) as one, atomic_write(picture) as other:
        assert one != other
        one.write_bytes(b"one")
        other.write_bytes(b"other")
    assert holds_only(picture.parent, picture, b"one")  # the outer block ends last


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_permissions_are_those_of_the_old_file_or_the_usual_ones(picture):
    picture.chmod(0o640)
    plain = picture.with_name("plain")
    plain.write_bytes(b"")
    new = picture.with_name("new")
    for path in (picture, new):
        with atomic_write(path) as beside:
            beside.write_bytes(NEW)
    assert stat.S_IMODE(picture.stat().st_mode) == 0o640
    assert new.stat().st_mode == plain.stat().st_mode


def test_a_link_stays_a_link(picture, tmp_path):
    link = tmp_path / "elsewhere" / "link.png"
    link.parent.mkdir()
    link.symlink_to(picture)
    with atomic_write(link) as beside:
        beside.write_bytes(NEW)
    assert link.is_symlink()
    assert picture.read_bytes() == NEW


def test_what_is_no_plain_file_is_refused_before_the_work(tmp_path):
    for path in (tmp_path, os.devnull):
        message = rf"path must name a file; got {re.escape(str(path))}\. Pass"
        with pytest.raises(ValueError, match=message), atomic_write(path):
            pytest.fail("the work was begun")


def test_a_write_protected_file_is_refused_before_the_work(picture, monkeypatch):
    picture.chmod(0o444)
    # root may write anything, so that the answer of the system is put in its mouth
    monkeypatch.setattr(os, "access", lambda path, mode: bool(path.stat().st_mode & 0o200))
    message = r"must name a file that may be written; got .*picture\.png"
    with pytest.raises(PermissionError, match=message), atomic_write(picture):
        pytest.fail("the work was begun")
    assert holds_only(picture.parent, picture, GOOD)
