"""Flow tests: `*.flowtest.yaml` files that run flows in virtual time with mocked calls, without a server.

`reading` makes a `TestFile` of a text; `running` runs its cases over the machine, with the answers that `mocks` has;
`checking` compares a run with what the case expects.
"""
