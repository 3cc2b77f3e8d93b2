"""Commands that talk to a running server, over `flowserver.client`. They import nothing of the server itself."""
