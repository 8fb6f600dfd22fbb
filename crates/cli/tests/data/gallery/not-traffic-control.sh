#!/bin/sh
# A backup, named by mistake.
for f in /etc/hosts; do cp "$f" /tmp/; done
