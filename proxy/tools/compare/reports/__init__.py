"""Reports: functions from a result to text, one file per format."""
