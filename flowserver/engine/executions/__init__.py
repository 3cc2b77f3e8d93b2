"""Executions in time: started, called for, timed, recovered, watched, deleted."""
