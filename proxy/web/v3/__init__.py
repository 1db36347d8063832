"""v3's surface: query strings in, frozen requests inside, v3-shaped JSON out (contract v3-rest.md)."""
