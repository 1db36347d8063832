"""ZIP archives whose members can be copied as raw bytes: zipfile would pack them anew, with other bytes.

Reading trusts nothing that the directory says: zipfile compares names and checksums, and what is unpacked is bounded.
"""

import itertools
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from proxy import errors
from proxy.tools.sheet.package import saving

# Larger workbooks are beyond what the programs that could have written them open in practice.
FILE_MAX = 1 << 28
# A workbook has a few parts for each sheet, chart and picture; Excel gives up long before this number.
MEMBERS_MAX = 1 << 14
# Text of cells rarely packs better than 30 : 1. Deflate's best is 1032 : 1, which only a bomb of equal bytes reaches.
RATIO_MAX = 200
RATIO_FREE = 1 << 24  # bytes that any member may unpack to: small ones may be as regular as they like
UNPACKED_MAX = 1 << 33  # bytes of all members: 1 048 576 rows of 150 cells each, at 50 bytes a cell
CHUNK = 1 << 16

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_ENCRYPTED, _UTF8 = 1, 0x800
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")
_SAVE_AS = "open it in Excel or LibreOffice and save it as .xlsx"
_FULL = 0xFFFFFFFF  # the value stands in the zip64 extra field


class Member(NamedTuple):
    """Entry of the directory. `record` is the entry's bytes; `end` is where the next header begins."""

    info: zipfile.ZipInfo
    end: int
    record: bytes

    @property
    def name(self) -> str:
        """Name of the part."""
        return self.info.filename

    @property
    def raw_name(self) -> bytes:
        """Bytes of the name."""
        fields = _CENTRAL.unpack_from(self.record)
        return self.record[_CENTRAL.size : _CENTRAL.size + fields[10]]

    @property
    def offset_at(self) -> tuple[str, int]:
        """Struct format and place of the offset in `record`: it moves when members before it change their size."""
        fields = _CENTRAL.unpack_from(self.record)
        if fields[16] != _FULL:
            return "<I", _CENTRAL.size - 4
        at = _CENTRAL.size + fields[10]
        while self.record[at : at + 2] != b"\1\0":  # other extra fields
            at += 4 + int.from_bytes(self.record[at + 2 : at + 4], "little")
        return "<Q", at + 4 + 8 * fields[8:10].count(_FULL)


class Archive:
    """ZIP file opened for reading. `members` are by name, in their order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # A copy: what another program saves while the file is filled must not be mixed with what was read before.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  (close() closes it)
        try:
            self._size = self._copy()
            self._check_format()
            self._opened = self._open()
            self.members = {member.name: member for member in self._checked(self._listed())}
        except BaseException:
            self.close()
            raise
        self.comment = self._opened.comment

    def _copy(self) -> int:
        """Copy the file; return its size."""
        with saving.open_regular(self.path) as original:
            if os.fstat(original.fileno()).st_size > FILE_MAX:
                raise self.error(f"is larger than a workbook may be ({FILE_MAX >> 20} MiB)")
            try:
                shutil.copyfileobj(original, self._file, CHUNK)
            except OSError as error:
                raise self.error(f"cannot be copied to {tempfile.gettempdir()}: {error.strerror}") from None
        return self._file.tell()

    def _check_format(self) -> None:
        """Refuse the formats that people mistake for .xlsx, and say how to convert them."""
        start = self.at(0, 8)
        if start.startswith(_OLE):
            # Excel wraps an encrypted .xlsx in the container of the old .xls.
            locked = any("EncryptedPackage".encode("utf-16-le") in block for block in self._blocks())
            what = "is protected by a password: save it without one" if locked else f"is an old .xls file: {_SAVE_AS}"
            raise self.error(what)
        if not start.startswith((b"PK\3\4", b"PK\5\6")):
            raise self.error(f"is no .xlsx or .xlsm workbook: {_SAVE_AS}" if start else "is empty")

    def _blocks(self) -> Iterator[bytes]:
        """Yield the whole file in blocks that overlap, so that a short text is in one of them as a whole."""
        for start in range(0, self._size, CHUNK):
            yield self.at(start, CHUNK + 64)

    def error(self, problem: str) -> errors.SheetError:
        """Return the error that names the file."""
        return errors.SheetError(f"{self.path}: {problem}")

    def damaged(self, problem: str) -> errors.SheetError:
        """Return the error of an archive that breaks its format."""
        return self.error(f"is damaged: {problem}; open it in Excel or LibreOffice and save it again")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def at(self, offset: int, size: int) -> bytes:
        """Return bytes of the file."""
        self._file.seek(offset)
        return self._file.read(size)

    def _open(self) -> zipfile.ZipFile:
        # Before all of them are in memory. By chance, these bytes are in few files that are not members.
        if sum(block.count(b"PK\1\2") for block in self._blocks()) > MEMBERS_MAX:
            raise self.error(f"has more parts than a workbook may have ({MEMBERS_MAX})")
        try:
            return zipfile.ZipFile(self._file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error):
            raise self.damaged("its directory is missing or wrong, as after an incomplete download") from None

    def _listed(self) -> list[Member]:
        """Return the members with their directory entries, and the ends of their spans."""
        members = self._opened.infolist()
        starts = sorted((self._opened.start_dir, *(info.header_offset for info in members)), reverse=True)
        ends = {start: end for end, start in itertools.pairwise(starts)}  # of two with one start, that itself
        listed, at = [], self._opened.start_dir
        for info in members:
            record = self.at(at, _CENTRAL.size + sum(struct.unpack("<3H", self.at(at + 28, 6))))
            listed.append(Member(info, ends.get(info.header_offset, 0), record))
            at += len(record)
        return listed

    def _checked(self, members: list[Member]) -> list[Member]:
        """Refuse members that share a name or bytes, and those that are not where the directory says."""
        if sum(member.info.file_size for member in members) > UNPACKED_MAX:
            raise self.error(f"is larger than a workbook may be ({UNPACKED_MAX >> 30} GiB unpacked)")
        folded: set[str] = set()  # part names differ by more than case
        for info, end, _ in members:
            name, shown = info.orig_filename, repr(info.orig_filename[:80])
            # Nothing is ever unpacked to a path; but such a name is made to harm whoever does.
            if name.startswith(("/", "\\")) or "\\" in name or "\0" in name or ".." in name.split("/"):
                raise self.error(f"has a part with an unsafe name ({shown}) and is not used")
            if name.lower() in folded:
                raise self.error(f"has two parts named {shown}: which of them counts is not clear")
            folded.add(name.lower())
            if info.header_offset < 0 or info.header_offset + _LOCAL.size + info.compress_size > end:
                raise self.damaged(f"the part {shown} reaches into the next one")
            if self.at(info.header_offset, 4) != b"PK\3\4":
                raise self.damaged(f"the part {shown} is not where the directory says")
        return members

    def chunks(self, name: str, limit: int) -> Iterator[bytes]:
        """Yield the unpacked bytes of a member, at most `limit`. Raises SheetError, also for a wrong checksum."""
        info, shown = self.members[name].info, repr(name[:80])
        if info.flag_bits & _ENCRYPTED:
            raise self.error(f"the part {shown} is encrypted; save the workbook without a password")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise self.error(
                f"the part {shown} is packed by method {info.compress_type}; save the workbook again in Excel"
            )
        # Programs that read headers instead of the directory would see another file. zipfile compares the names.
        differs = self.at(info.header_offset + 8, 2) != info.compress_type.to_bytes(2, "little")
        size = 0
        try:
            with self._opened.open(info) as unpacked:
                while chunk := unpacked.read(CHUNK):
                    size += len(chunk)
                    if size > limit or (size > RATIO_FREE and size > RATIO_MAX * info.compress_size):
                        raise self.error(f"the part {shown} is larger than it may be")
                    yield chunk
        except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, zlib.error):
            differs = True
        if differs or size != info.file_size:
            raise self.damaged(f"the part {shown} differs from what the directory says, or cannot be unpacked")

    def raw(self, member: Member) -> Iterator[bytes]:
        """Yield header, packed data and data descriptor of a member as they stand."""
        for at in range(member.info.header_offset, member.end, CHUNK):
            yield self.at(at, min(CHUNK, member.end - at))


class ArchiveWriter:
    """Writes an archive of copied, replaced and new members to a seekable file."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._records: list[bytes] = []

    def copy(self, archive: Archive, member: Member) -> None:
        """Copy a member with its header, extra fields and packed bytes."""
        offset = self._stream.tell()
        for data in archive.raw(member):
            self._stream.write(data)
        record = bytearray(member.record)
        form, at = member.offset_at
        struct.pack_into(form, record, at, offset)
        self._records.append(bytes(record))

    def write(self, name: str, chunks: Iterable[bytes], replaced: Member | None = None) -> None:
        """Pack a member; `replaced` gives it the time and attributes of the member in whose place it stands."""
        offset = self._stream.tell()
        raw_name, flags = name.encode(), 0 if name.isascii() else _UTF8
        # Versions, time and date of the old record; else those that Excel gives to every part: 2.0, 1980-01-01.
        made, time, date, inner, outer = 20, 0, 0x21, 0, 0
        if replaced is not None:
            old = _CENTRAL.unpack_from(replaced.record)
            made, time, date, inner, outer = old[1], old[5], old[6], old[14], old[15]
            raw_name, flags = replaced.raw_name, replaced.info.flag_bits & _UTF8
        self._stream.write(bytes(_LOCAL.size) + raw_name)
        crc, packed, unpacked = self._pack(chunks)
        if max(unpacked, offset) >= _FULL:
            raise errors.SheetError(f"the part {name!r} would be larger than 4 GiB; fill fewer columns at once")
        sizes = 20, flags, zipfile.ZIP_DEFLATED, time, date, crc, packed, unpacked, len(raw_name), 0
        self._stream.seek(offset)
        self._stream.write(_LOCAL.pack(b"PK\3\4", *sizes))
        self._stream.seek(0, os.SEEK_END)
        self._records.append(_CENTRAL.pack(b"PK\1\2", made, *sizes, 0, 0, inner, outer, offset) + raw_name)

    def _pack(self, chunks: Iterable[bytes]) -> tuple[int, int, int]:
        """Write the packed chunks; return checksum, packed and unpacked size."""
        deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
        crc = packed = unpacked = 0
        for chunk in chunks:
            crc = zlib.crc32(chunk, crc)
            unpacked += len(chunk)
            packed += self._stream.write(deflate.compress(chunk))
        packed += self._stream.write(deflate.flush())
        return crc, packed, unpacked

    def finish(self, comment: bytes) -> None:
        """Write the directory."""
        start = self._stream.tell()
        for record in self._records:
            self._stream.write(record)
        size, count = self._stream.tell() - start, len(self._records)
        self._stream.write(_END.pack(b"PK\5\6", 0, 0, count, count, size, start, len(comment)) + comment)
