"""What an overview of the whole server shows. Each read is bounded: it visits no more rows in larger tables."""
