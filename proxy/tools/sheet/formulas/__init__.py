"""The spreadsheet add-ins' functions in formulas: found, evaluated and given new cached values."""
