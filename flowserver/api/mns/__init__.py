"""The message service's HTTP API, version 2015-06-06: queues and topics, in XML, as its SDKs speak it."""
