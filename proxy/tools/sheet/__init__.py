"""Parts lists and workbooks filled with parts data, through the quota and the store of the service."""
