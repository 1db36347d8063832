"""ZIP archives: members are copied as they stand, and what lies about itself is refused."""

import io
import itertools
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import pytest
from tools.sheet.package import exact_workbook

from proxy import errors
from proxy.tools.sheet.package import archive

PARTS = exact_workbook.parts(exact_workbook.sheet('<row r="1"><c r="A1"><v>1</v></c></row>'))


def _records(data: bytes) -> dict[str, tuple[bytes, bytes]]:
    """Header with packed bytes, and directory entry without its offset, by the name of the member."""
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        members = opened.infolist()
        starts = [*(member.header_offset for member in members), opened.start_dir]
    records = {}
    at = starts[-1]
    for member, (start, end) in zip(members, itertools.pairwise(starts), strict=True):
        name, extra, comment = struct.unpack_from("<3H", data, at + 28)
        size = 46 + name + extra + comment
        records[member.filename] = data[start:end], data[at : at + 42] + data[at + 46 : at + size]
        at += size
    return records


class _Unseekable(io.RawIOBase):
    """A stream to which zipfile writes sizes behind the data."""

    def __init__(self) -> None:
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += data
        return len(data)


def _with_descriptors() -> bytes:
    stream = _Unseekable()
    with zipfile.ZipFile(cast(IO[bytes], stream), "w", zipfile.ZIP_DEFLATED) as opened:
        for name, text in PARTS.items():
            opened.writestr(name, text)
    return bytes(stream.data)


def _unusual() -> bytes:
    """Stored members, other compression levels, times, extra fields, comments, zip64 fields, a folder."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as opened:
        for number, (name, text) in enumerate(PARTS.items()):
            info = zipfile.ZipInfo(name, (1980 + number, 1, 2, 3, 4, 6))
            info.extra, info.comment = struct.pack("<2H2s", 0x7777, 2, b"ab"), b"comment"
            info.external_attr, info.internal_attr = 0o644 << 16, 1
            info.compress_type = zipfile.ZIP_DEFLATED if number % 2 else zipfile.ZIP_STORED
            with opened.open(info, "w", force_zip64=number % 3 == 0) as member:
                member.write(text.encode() if isinstance(text, str) else text)
        opened.writestr(zipfile.ZipInfo("xl/media/"), b"")
        opened.comment = b"of the archive PK\5\6"[:14]
    return stream.getvalue()


def _with_zip64_directory() -> bytes:
    """Offsets and sizes in zip64 fields of the directory, and a zip64 end record, though they would fit."""
    data = _unusual()
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        members, start = opened.infolist(), opened.start_dir
    directory = b""
    for member in members:
        extra = struct.pack("<2H3Q", 1, 24, member.file_size, member.compress_size, member.header_offset)
        fixed = struct.pack(
            "<4s6H3I5H2I", b"PK\1\2", 45, 45, member.flag_bits, member.compress_type, 0, 0x21, member.CRC,
            0xFFFFFFFF, 0xFFFFFFFF, len(member.filename), len(extra), 0, 0, 0, 0, 0xFFFFFFFF,
        )  # fmt: skip
        directory += fixed + member.filename.encode() + extra
    end64 = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, len(members), len(members), len(directory), start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start + len(directory), 1)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    return data[:start] + directory + end64 + locator + end


@pytest.mark.parametrize("make", [_with_descriptors, _unusual, _with_zip64_directory])
def test_members_are_copied_with_every_byte(tmp_path: Path, make: Callable[[], bytes]) -> None:
    source, target = tmp_path / "a.zip", tmp_path / "b.zip"
    source.write_bytes(make())
    replaced = "xl/_rels/workbook.xml.rels"
    with archive.Archive(source) as opened, target.open("w+b") as stream:
        writer = archive.ArchiveWriter(stream)
        for member in opened.members.values():
            if member.name == replaced:
                writer.write(member.name, [b"longer than before " * 99, b"<x/>"], member)
            else:
                writer.copy(opened, member)
        writer.write("xl/é.xml", [b"new"])
        writer.finish(opened.comment)
    with zipfile.ZipFile(target) as written:
        assert written.testzip() is None
        assert written.namelist() == [*zipfile.ZipFile(source).namelist(), "xl/é.xml"]
        assert written.read(replaced) == b"longer than before " * 99 + b"<x/>"
        assert written.getinfo(replaced).date_time == zipfile.ZipFile(source).getinfo(replaced).date_time
        assert written.comment == zipfile.ZipFile(source).comment
    if make is not _with_zip64_directory:  # there the offset stands at another place
        old, new = _records(source.read_bytes()), _records(target.read_bytes())
        assert {name for name in old if old[name] != new[name]} == {replaced}


def _refusal(path: Path, data: bytes, name: str = "a") -> str:
    path.write_bytes(data)
    with pytest.raises(errors.SheetError) as error, archive.Archive(path) as opened:
        b"".join(opened.chunks(name, 1 << 24))
    return str(error.value)


def _packed(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytearray:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as opened:
        for name, content in members:
            opened.writestr(name, content)
    return bytearray(stream.getvalue())


def test_a_member_that_unpacks_further_than_it_says_is_refused_early(tmp_path: Path) -> None:
    data = _packed(("a", b"x" * 1_000_000))
    directory = data.index(b"PK\1\2")
    struct.pack_into("<I", data, directory + 24, 1000)
    assert "differs from what the directory says" in _refusal(tmp_path / "a.xlsx", bytes(data))
    struct.pack_into("<I", data, directory + 24, 2_000_000)
    assert "differs from what the directory says" in _refusal(tmp_path / "a.xlsx", bytes(data))


def test_a_bomb_is_refused_by_its_ratio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "RATIO_FREE", 1 << 16)
    bomb = bytes(_packed(("a", bytes(10_000_000))))
    assert "larger than it may be" in _refusal(tmp_path / "a.xlsx", bomb)
    text = bytes(_packed(("a", b"".join(b'<c r="A%d"><v>%d</v></c>' % (i, i * 7) for i in range(100_000)))))
    (tmp_path / "b.xlsx").write_bytes(text)
    with archive.Archive(tmp_path / "b.xlsx") as opened:
        assert len(b"".join(opened.chunks("a", 1 << 24))) > 1_000_000


def test_the_limit_of_the_reader_holds(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(_packed(("a", b"x" * 100)))
    with archive.Archive(tmp_path / "a.xlsx") as opened, pytest.raises(errors.SheetError, match="larger than"):
        b"".join(opened.chunks("a", 99))


def test_data_that_ends_early_or_goes_on_is_refused(tmp_path: Path) -> None:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    unfinished = deflate.compress(b"x" * 1000) + deflate.flush(zlib.Z_SYNC_FLUSH)
    for content in (unfinished, b"\xff" * 30):
        data = _packed(("a", content), method=zipfile.ZIP_STORED)
        struct.pack_into("<H", data, 8, zipfile.ZIP_DEFLATED)
        struct.pack_into("<H", data, data.index(b"PK\1\2") + 10, zipfile.ZIP_DEFLATED)
        struct.pack_into("<I", data, data.index(b"PK\1\2") + 24, 1000)
        assert "cannot be unpacked" in _refusal(tmp_path / "a.xlsx", bytes(data))


def test_a_header_that_differs_from_the_directory_is_refused(tmp_path: Path) -> None:
    data = _packed(("a", b"content"))
    data[30:31] = b"b"
    assert "differs from what the directory says" in _refusal(tmp_path / "a.xlsx", bytes(data))


@pytest.mark.parametrize("name", ["../a", "/a", "x/../../a", "x\\a", "C:\\a"])
def test_unsafe_names_are_refused(tmp_path: Path, name: str) -> None:
    data = bytes(_packed(("a", b"1"), (name.replace("\\", "?"), b"2"))).replace(b"?", b"\\")
    assert "unsafe name" in _refusal(tmp_path / "a.xlsx", data)


def test_two_members_of_one_name_are_refused_whatever_their_case(tmp_path: Path) -> None:
    assert "two parts named" in _refusal(tmp_path / "a.xlsx", bytes(_packed(("a", b"1"), ("A", b"2"))))


@pytest.mark.parametrize(
    "limit,problem", [("FILE_MAX", "larger than"), ("MEMBERS_MAX", "more parts"), ("UNPACKED_MAX", "unpacked")]
)
def test_limits_of_the_whole_file_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, problem: str
) -> None:
    monkeypatch.setattr(archive, limit, 1)
    assert problem in _refusal(tmp_path / "a.xlsx", bytes(_packed(("a", b"12"), ("b", b""))))


def test_every_cut_of_a_file_is_an_error_in_one_line(tmp_path: Path) -> None:
    whole = bytes(_packed(("a", b"content" * 9), ("b", b"")))
    for size in range(len(whole)):
        assert "\n" not in _refusal(tmp_path / "a.xlsx", whole[:size])


def test_files_that_cannot_be_opened_are_errors_in_one_line(tmp_path: Path) -> None:
    for path, problem in ((tmp_path / "none.xlsx", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(errors.SheetError, match=problem):
            archive.Archive(path)
