"""Resolvers by subject. Each module has a table RESOLVERS, "Type.field" to function; ../schema.py joins them.

A field without an entry is read from the attribute of the same name, or from the one named in ATTRIBUTES.
"""
