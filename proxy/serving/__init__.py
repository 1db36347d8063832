"""Serving of v3 requests without HTTP: from parameters to the encoded body of the response."""
