"""`v3bridge sheet`: fills spreadsheets with parts data, through the gateway's quota and cache."""
