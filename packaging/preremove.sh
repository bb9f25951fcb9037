#!/bin/sh
# Before a removal or upgrade. dpkg says "remove", rpm gives the number of versions that stay.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now otelcol-profiles.service
	fi
	;;
esac
