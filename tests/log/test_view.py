"""Files of a view: links until they are changed."""

from kafkalite.log.view import ViewDisk, make_view


def test_a_file_that_is_changed_is_copied_first(tmp_path):
    source, view = tmp_path / "source", tmp_path / "view"
    (source / "t-0").mkdir(parents=True)
    (source / "t-0" / "00.log").write_bytes(b"abcdef")
    (source / "meta.properties").write_text("node.id=1")
    (source / ".lock").write_text("")
    (source / "x.tmp").write_text("")
    make_view(source, view)
    disk = ViewDisk(syncs=False)
    path = str(view / "t-0" / "00.log")
    file = disk.open(path)
    assert file.pread(10, 0) == b"abcdef"
    assert not (view / ".lock").exists()
    assert not (view / "x.tmp").exists()
    file.sync()
    number = file.fileno()
    file.truncate(4)
    file.append(b"!")
    assert file.fileno() == number
    assert file.pread(10, 0) == b"abcd!"
    assert (view / "t-0" / "00.log").read_bytes() == b"abcd!"
    assert (source / "t-0" / "00.log").read_bytes() == b"abcdef"
    file.close()
    disk.replace(str(view / "meta.properties"), b"node.id=2")
    disk.remove(str(view / "t-0"))
    own = disk.open(str(view / "own"), create=True)
    own.append(b"1")
    own.close()
    assert (source / "meta.properties").read_text() == "node.id=1"
    assert (source / "t-0" / "00.log").exists()
