"""What the commands `compare`, `record` and `shadow` are put together of; they are files of the folder above.

`options.py` and `choice.py` say what can be chosen; `opened.py` reads what is asked and opens both sides (`sides.py`,
`beside.py`); `compared.py` and `recording.py` go through with it; `shadow_report.py` shows what shadows have gathered.
"""
