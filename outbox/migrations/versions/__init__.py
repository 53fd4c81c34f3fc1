"""One module per revision, each beside the SQL file that it runs."""
