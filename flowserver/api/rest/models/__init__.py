"""What REST requests and replies look like. The classes' names are the schema names of the OpenAPI document."""
