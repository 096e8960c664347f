"""The morning after: what a run came to, as figures first and then as a page, tables or rows."""
