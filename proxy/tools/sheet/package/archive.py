"""ZIP archives whose members can be copied as raw bytes: a library would pack them anew, with other bytes.

Reading trusts nothing that the directory says: sizes and checksums are compared with what is unpacked, and what is
unpacked is bounded.
"""

import os
import shutil
import struct
import tempfile
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
DIRECTORY_MAX = MEMBERS_MAX << 10  # bytes; an entry has about 100
# Text of cells rarely packs better than 30 : 1. Deflate's best is 1032 : 1, which only a bomb of equal bytes reaches.
RATIO_MAX = 200
RATIO_FREE = 1 << 24  # bytes that any member may unpack to: small ones may be as regular as they like
UNPACKED_MAX = 1 << 33  # bytes of all members: 1 048 576 rows of 150 cells each, at 50 bytes a cell
CHUNK = 1 << 16

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64_LOCATOR = struct.Struct("<4sIQI")
_END64 = struct.Struct("<4sQ2H2I4Q")
_STORED, _DEFLATED = 0, 8
_ENCRYPTED, _DESCRIPTOR, _UTF8 = 1, 8, 0x800
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")
_SAVE_AS = "open it in Excel or LibreOffice and save it as .xlsx"
_FULL = 0xFFFFFFFF  # the value stands in the zip64 extra field


class Member(NamedTuple):
    """Entry of the directory. `record` is the entry's bytes; `offset` is where its local header begins, `end` where
    the next header begins."""

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    unpacked: int
    offset: int
    end: int
    record: bytes
    offset_at: tuple[int, str]
    """Where `record` holds the offset, and its struct format: it moves when members before it change their size."""

    @property
    def raw_name(self) -> bytes:
        """Bytes of the name."""
        fields = _CENTRAL.unpack_from(self.record)
        return self.record[_CENTRAL.size : _CENTRAL.size + fields[10]]


class _Container:
    """File opened for reading that may be an archive, and its errors."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # A copy: what another program saves while the file is filled must not be mixed with what was read before.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  (close() closes it)
        try:
            self.size = self._copy()
            self._check_format()
        except BaseException:
            self._file.close()
            raise

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
        for start in range(0, self.size, CHUNK):
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


class _Directory:
    """Reads the directory at the end of an archive."""

    def __init__(self, file: _Container) -> None:
        self._file = file

    def read(self) -> tuple[dict[str, Member], bytes]:
        """Return the members by name, in their order, and the archive's comment."""
        comment, start, size, count = self._end_record()
        return self._directory(start, size, count), comment

    def _end_record(self) -> tuple[bytes, int, int, int]:
        """Return the archive's comment, and offset, size and number of entries of the directory."""
        tail_at = max(0, self._file.size - _END.size - 0xFFFF)
        tail = self._file.at(tail_at, self._file.size - tail_at)
        found = tail.rfind(b"PK\5\6")
        if found < 0 or len(tail) < found + _END.size:
            raise self._file.damaged("its end is missing, as after an incomplete download")
        _, disk, _, _, count, size, start, comment = _END.unpack_from(tail, found)
        if disk not in (0, 0xFFFF) or found + _END.size + comment > len(tail):
            raise self._file.damaged("its end record is wrong")
        end = tail_at + found
        if found >= _END64_LOCATOR.size and tail[found - _END64_LOCATOR.size :].startswith(b"PK\6\7"):
            end, start, size, count = self._end_record64(end - _END64_LOCATOR.size)
        if start + size != end:
            raise self._file.damaged("its directory is not where its end record says")
        return tail[found + _END.size : found + _END.size + comment], start, size, count

    def _end_record64(self, locator: int) -> tuple[int, int, int, int]:
        """Return offset of the zip64 end record, and offset, size and number of entries of the directory."""
        end = _END64_LOCATOR.unpack(self._file.at(locator, _END64_LOCATOR.size))[2]
        record = self._file.at(end, _END64.size) if end < locator else b""
        if len(record) < _END64.size or not record.startswith(b"PK\6\6"):
            raise self._file.damaged("its zip64 end record is wrong")
        count, size, start = _END64.unpack(record)[7:]
        return end, start, size, count

    def _directory(self, start: int, size: int, count: int) -> dict[str, Member]:
        if count > MEMBERS_MAX or size > DIRECTORY_MAX:
            raise self._file.error(f"has more parts than a workbook may have ({MEMBERS_MAX})")
        data, members, at = self._file.at(start, size), [], 0
        for _ in range(count):
            member, at = self._entry(data, at)
            members.append(member)
        if at != len(data):
            raise self._file.damaged("its directory has another number of entries than its end record says")
        if sum(member.unpacked for member in members) > UNPACKED_MAX:
            raise self._file.error(f"is larger than a workbook may be ({UNPACKED_MAX >> 30} GiB unpacked)")
        return self._spans(members, start)

    def _entry(self, data: bytes, at: int) -> tuple[Member, int]:
        """Parse one entry of the directory; return it and the offset behind it."""
        if data[at : at + 4] != b"PK\1\2" or len(data) < at + _CENTRAL.size:
            raise self._file.damaged("its directory is wrong")
        fields = _CENTRAL.unpack_from(data, at)
        flags, method, crc, packed, unpacked = fields[3], fields[4], *fields[7:10]
        name_size, extra_size, comment_size, offset = *fields[10:13], fields[16]
        name_end = at + _CENTRAL.size + name_size
        end = name_end + extra_size + comment_size
        if end > len(data):
            raise self._file.damaged("its directory is wrong")
        name = self._name(data[at + _CENTRAL.size : name_end], flags)
        sizes, offset_at = [unpacked, packed, offset], (_CENTRAL.size - 4, "<I")
        large = _zip64(data[name_end : name_end + extra_size])
        for index, value in enumerate(sizes):
            if value == _FULL and (wide := next(large, None)):
                sizes[index] = wide[1]
                offset_at = (_CENTRAL.size + name_size + wide[0], "<Q") if index == 2 else offset_at
        unpacked, packed, offset = sizes
        return Member(name, flags, method, crc, packed, unpacked, offset, 0, data[at:end], offset_at), end

    def _name(self, raw: bytes, flags: int) -> str:
        try:
            name = raw.decode("utf-8" if flags & _UTF8 else "cp437")
        except UnicodeDecodeError:
            raise self._file.damaged("the name of a part is no UTF-8") from None
        # Nothing is ever unpacked to a path; but such a name is made to harm whoever does.
        if name.startswith(("/", "\\")) or "\\" in name or "\0" in name or ".." in name.split("/"):
            raise self._file.error(f"has a part with an unsafe name ({name[:80]!r}) and is not used")
        return name

    def _spans(self, members: list[Member], directory: int) -> dict[str, Member]:
        """Return the members by name, with the ends of their spans. No two may share a name or bytes."""
        ordered = sorted(members, key=lambda member: member.offset)
        ends = [*(member.offset for member in ordered[1:]), directory]
        by_offset: dict[int, Member] = {}
        folded: set[str] = set()  # part names differ by more than case
        for member, end in zip(ordered, ends, strict=False):
            if member.name.lower() in folded:
                raise self._file.error(f"has two parts named {member.name[:80]!r}: which of them counts is not clear")
            folded.add(member.name.lower())
            if member.offset + _LOCAL.size + member.packed > end:
                raise self._file.damaged(f"the part {member.name[:80]!r} reaches into the next one")
            by_offset[member.offset] = member._replace(end=end)
        return {member.name: by_offset[member.offset] for member in members}


class Archive(_Container):
    """ZIP file opened for reading. Members keep their order."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self.members, self.comment = _Directory(self).read()
        except BaseException:
            self.close()
            raise

    def chunks(self, name: str, limit: int) -> Iterator[bytes]:
        """Yield the unpacked bytes of a member, at most `limit`. Raises SheetError, also for a wrong checksum."""
        member = self.members[name]
        shown = repr(name[:80])
        if member.flags & _ENCRYPTED:
            raise self.error(f"the part {shown} is encrypted; save the workbook without a password")
        if member.method not in (_STORED, _DEFLATED):
            raise self.error(f"the part {shown} is packed by method {member.method}; save the workbook again in Excel")
        size = crc = 0
        for chunk in self._unpacked(member):
            size += len(chunk)
            crc = zlib.crc32(chunk, crc)
            if size > min(limit, member.unpacked) or (size > RATIO_FREE and size > RATIO_MAX * member.packed):
                raise self.error(f"the part {shown} is larger than it may be, or than the directory says")
            yield chunk
        if size != member.unpacked or crc != member.crc:
            raise self.damaged(f"the part {shown} does not match its checksum")

    def _unpacked(self, member: Member) -> Iterator[bytes]:
        packed = self._packed(member)
        if member.method == _STORED:
            yield from packed
            return
        inflate = zlib.decompressobj(-15)
        try:
            for data in packed:
                yield inflate.decompress(data, CHUNK)
                while inflate.unconsumed_tail:
                    yield inflate.decompress(inflate.unconsumed_tail, CHUNK)
            while not inflate.eof and (rest := inflate.decompress(b"", CHUNK)):
                yield rest
        except zlib.error:
            raise self.damaged(f"the part {member.name[:80]!r} cannot be unpacked") from None
        if not inflate.eof:
            raise self.damaged(f"the part {member.name[:80]!r} is incomplete")

    def _packed(self, member: Member) -> Iterator[bytes]:
        header = self.at(member.offset, _LOCAL.size)
        if len(header) < _LOCAL.size or not header.startswith(b"PK\3\4"):
            raise self.damaged(f"the part {member.name[:80]!r} is not where the directory says")
        method, (name_size, extra_size) = _LOCAL.unpack(header)[3], _LOCAL.unpack(header)[9:]
        start = member.offset + _LOCAL.size + name_size + extra_size
        # Programs that read headers instead of the directory would see another file.
        if method != member.method or self.at(member.offset + _LOCAL.size, name_size) != member.raw_name:
            raise self.damaged(f"the header of the part {member.name[:80]!r} differs from the directory")
        if start + member.packed > member.end:
            raise self.damaged(f"the part {member.name[:80]!r} reaches into the next one")
        return self._bytes(start, start + member.packed)

    def _bytes(self, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            data = self.at(start, min(CHUNK, end - start))
            if not data:
                raise self.damaged("it became shorter while it was read")
            start += len(data)
            yield data

    def raw(self, member: Member) -> Iterator[bytes]:
        """Yield header, packed data and data descriptor of a member as they stand."""
        return self._bytes(member.offset, member.end)

    def read(self, name: str, limit: int) -> bytes:
        """Return the unpacked bytes of a member."""
        return b"".join(self.chunks(name, limit))


def _zip64(extra: bytes) -> Iterator[tuple[int, int]]:
    """Yield the values of the zip64 extra field with their positions: of those fields that do not fit, in order."""
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            for value_at in range(at + 4, min(at + 4 + size, len(extra)) - 7, 8):
                yield value_at, int.from_bytes(extra[value_at : value_at + 8], "little")
        at += 4 + size


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
        at, form = member.offset_at
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
            raw_name, flags = replaced.raw_name, replaced.flags & _UTF8
        self._stream.write(bytes(_LOCAL.size) + raw_name)
        crc, packed, unpacked = self._pack(chunks)
        if max(unpacked, offset) >= _FULL:
            raise errors.SheetError(f"the part {name!r} would be larger than 4 GiB; fill fewer columns at once")
        sizes = 20, flags, _DEFLATED, time, date, crc, packed, unpacked, len(raw_name), 0
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
