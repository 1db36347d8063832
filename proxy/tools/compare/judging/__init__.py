"""Pure judgement of two responses. Nothing here sends a request or knows the mappings under test."""
