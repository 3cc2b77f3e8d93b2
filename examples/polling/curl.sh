#!/bin/sh
# The polling tutorial with curl: ./curl.sh [seconds that the job takes]
# FLOWSERVER_URL is the server; FLOWSERVER_TOKEN is a bearer token, if the server has access keys.
set -eu
cd "$(dirname "$0")"
api=${FLOWSERVER_URL:-http://127.0.0.1:8080}/v1
flow=fnf-demo-polling
run=curl-$(date +%s)-$$

call() {
    curl --silent --show-error --fail-with-body ${FLOWSERVER_TOKEN:+--header "Authorization: Bearer $FLOWSERVER_TOKEN"} "$@"
}

echo "1. Create the flow, or bring it up to date"
call --request PUT --header 'Content-Type: application/yaml' --data-binary @flow.yaml "$api/flows/$flow" >/dev/null

echo "2. Start an execution and wait for its end, a minute at most"
ended=$(call --json "{\"name\": \"$run\", \"input\": {\"delay\": ${1:-20}}}" "$api/flows/$flow/executions?wait=60")

echo "3. The steps that were entered"
call "$api/flows/$flow/executions/$run/events?limit=1000" |
    tr '{' '\n' | sed -n 's/.*"type":"StepEntered","stepName":"\([^"]*\)".*/   \1/p'

echo "4. How it ended"
printf '%s\n' "$ended" | sed 's/.*"status":"\([A-Za-z]*\)".*"output":\(.*\),"definition":.*/   \1 \2/'
case $ended in
*'"status":"Succeeded"'*) ;;
*)
    printf '%s\n' "$ended" | sed 's/.*"error":\(.*\),"parkedError":.*/   error: \1/' >&2
    exit 1
    ;;
esac
