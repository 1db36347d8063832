"""Pages of the admin interface, one module each: the data of the page, which is also its JSON."""
