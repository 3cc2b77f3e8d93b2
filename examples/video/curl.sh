#!/bin/sh
# Transcode a video and stop it halfway: ./curl.sh [seconds that the video takes] [seconds after which to stop]
# FLOWSERVER_URL is the server; FLOWSERVER_TOKEN is a bearer token, if the server has access keys.
set -eu
function=${FLOWSERVER_URL:-http://127.0.0.1:8080}/2016-08-15/services/media/functions/transcode
task=video-$(date +%s)-$$
seconds=${1:-60}
patience=${2:-3}

call() {
    curl --silent --show-error --fail-with-body ${FLOWSERVER_TOKEN:+--header "Authorization: Bearer $FLOWSERVER_TOKEN"} "$@"
}

status() {
    call "$function/stateful-async-invocations/$task" | sed 's/.*"invocationId":"[^"]*","status":"\([A-Za-z]*\)".*/\1/'
}

echo "1. Submit the task $task"
call --header 'X-Fc-Invocation-Type: Async' --header "X-Fc-Stateful-Async-Invocation-Id: $task" \
    --data "{\"video\": \"$task\", \"seconds\": $seconds}" "$function/invocations"

echo "2. Watch it"
last=
waited=0
while :; do
    now=$(status)
    [ "$now" = "$last" ] || echo "   $now"
    last=$now
    case $now in
    Succeeded | Failed | Stopped | Expired | Invalid) break ;;
    Running) waited=$((waited + 1)) ;;
    esac
    if [ "$waited" -eq $((patience * 2)) ]; then
        echo "3. Stop it"
        call --request PUT "$function/stateful-async-invocations/$task" >/dev/null
    fi
    sleep 0.5
done

echo "4. All states that it was in, each with its time in milliseconds"
call "$function/stateful-async-invocations/$task" | tr '{' '\n' |
    sed -n 's/.*"status":"\([A-Za-z]*\)","timestamp":\([0-9]*\).*/   \2 \1/p'
