"""zstd: that of the standard library (Python 3.14), or its backport."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor, ZstdDecompressor, ZstdError, ZstdFile, compress, decompress
else:
    from backports.zstd import ZstdCompressor, ZstdDecompressor, ZstdError, ZstdFile, compress, decompress

__all__ = ["ZstdCompressor", "ZstdDecompressor", "ZstdError", "ZstdFile", "compress", "decompress"]
