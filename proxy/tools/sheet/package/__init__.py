"""Workbook packages (.xlsx, .xlsm): cells are read in a stream, and changed without touching anything else.

    with workbook.open_package(path) as package:
        for number, row in package.rows(package.sheets[0]): ...
        package.save(target, {"BOM": {(2, 7): cells.CellChange(Decimal("0.12"))}})

`cells` has the values, `workbook` the file.
"""
