"""Headers that v3bridge adds to v3's requests."""

from multidict import istr

X_STRICT = istr("X-Strict")
X_EXPLAIN = istr("X-Explain")
TRACE = "trace"  # the value of X-Explain
