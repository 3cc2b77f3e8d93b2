#!/bin/sh
# The callback tutorial with curl.
# FLOWSERVER_URL is the server; FLOWSERVER_TOKEN is a bearer token, if the server has access keys.
set -eu
cd "$(dirname "$0")"
api=${FLOWSERVER_URL:-http://127.0.0.1:8080}/v1
flow=fnf-demo-callback
run=curl-$(date +%s)-$$

call() {
    curl --silent --show-error --fail-with-body ${FLOWSERVER_TOKEN:+--header "Authorization: Bearer $FLOWSERVER_TOKEN"} "$@"
}

echo "1. Create the flow, or bring it up to date"
call --request PUT --header 'Content-Type: application/yaml' --data-binary @flow.yaml "$api/flows/$flow" >/dev/null

echo "2. Start an execution"
call --json "{\"name\": \"$run\"}" "$api/flows/$flow/executions" >/dev/null

echo "3. Read the task token from the output of the TaskSubmitted event"
token=
for _ in 1 2 3 4 5 6 7 8 9 10; do
    events=$(call "$api/flows/$flow/executions/$run/events")
    token=$(printf '%s\n' "$events" | sed -n 's/.*"type":"TaskSubmitted".*"output":{"taskToken":"\([^"]*\)".*/\1/p')
    [ -z "$token" ] || break
    sleep 1
done
echo "   ${token:?the task was not submitted: is flowserver functions serve running?}"

echo "4. Report that the task has succeeded"
call --json "{\"taskToken\": \"$token\", \"output\": {\"status\": \"ok\"}}" "$api/tasks/succeed"
echo

echo "5. How the execution ended"
ended=$(call "$api/flows/$flow/executions/$run?wait=30")
printf '%s\n' "$ended" | sed 's/.*"status":"\([A-Za-z]*\)".*"output":\(.*\),"definition":.*/   \1 \2/'
case $ended in
*'"output":{"s":"ok"}'*) ;;
*)
    printf '%s\n' "$ended" | sed 's/.*"error":\(.*\),"parkedError":.*/   error: \1/' >&2
    exit 1
    ;;
esac
