# Kills everybody it may.
kill -9 -1
