"""LibreOffice reads a workbook and writes what it understood. Its exit code proves nothing: only the values do."""

import subprocess
from pathlib import Path

from support.workbooks import packed
from support.workbooks.packed import PackedCell

SECONDS = 100


def opened(program: str, file: Path, folder: Path) -> dict[str, dict[str, PackedCell]]:
    """The cells of every sheet that has any, as LibreOffice read them."""
    target = folder / "as-read"
    command = [program, f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless", "--norestore"]
    command += ["--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir", str(target), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    (written,) = target.iterdir()
    content = written.read_bytes()
    assert packed.members(content), done.stderr
    parts = packed.sheets(content)
    return {name: packed.cells(content, name) for name, part in parts.items() if "chartsheet" not in part}
