"""Commands `sheet fill` and `sheet formulas`: options, files, output."""
