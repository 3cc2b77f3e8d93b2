"""The language server: the help of `flowserver.editing` over the protocol of editors, by pygls, which is an extra."""
