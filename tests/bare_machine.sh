#!/usr/bin/env bash
# Runs the README's two commands, `make run` and `make test`, on a bare machine: a root folder of Debian 12 with
# git, make, python3-venv and ca-certificates, and nothing else. Needs root, debootstrap, and the registries of packages.
# Usage: tests/bare_machine.sh FOLDER [MAKE-TARGET ...]    (default targets: test; the folder is made, or used again)
# Prints the seconds of each command. Exit code: that of the first command that fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=${1:?usage: tests/bare_machine.sh FOLDER [MAKE-TARGET ...]}
shift
root=$folder/root
checkout=/root/flowserver

if [ ! -e "$root/.complete" ]; then
	rm -rf "$root"
	debootstrap --variant=minbase --include=git,make,python3-venv,ca-certificates bookworm "$root" >"$folder.log"
	touch "$root/.complete"
fi
# A company's network may have its own resolver, certificates and index of packages.
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
rm -rf "${root:?}$checkout"
git clone --quiet "$PWD" "$root$checkout"

# Mounts and processes end with the name spaces. Everything of the caller's environment stays outside.
inside() {
	unshare --mount --pid --fork --kill-child sh -ec '
		mount -t proc proc "$0/proc"
		mount -t devpts devpts "$0/dev/pts" -o newinstance,ptmxmode=0666
		exec chroot "$0" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 sh -ec "$1"
	' "$root" "cd $checkout; $1"
}

timed() {
	local began=$SECONDS status=0
	inside "$2" || status=$?
	echo "$1: exit code $status after $((SECONDS - began)) s"
	return $status
}

timed 'make run' '
	make run >/tmp/run.log 2>&1 & server=$!
	for try in $(seq 300); do
		python3 -c "import urllib.request; urllib.request.urlopen(\"http://127.0.0.1:8080/readyz\", timeout=5)" 2>/dev/null && exit 0
		kill -0 $server || break
		sleep 1
	done
	cat /tmp/run.log; exit 1'
for target in "${@:-test}"; do
	timed "make $target" "make $target"
done
