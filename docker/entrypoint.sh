#!/bin/sh
# Starts `tercet` with the kernels that the image compiled, also where a volume covers the cache. They are copied,
# since Numba needs a folder that it can write to: it adds what another processor than the builder's needs. Each
# image has a folder of its own, for Numba must not find the files of two mixed.
set -eu
kernels=/opt/tercet/kernels
cache="$NUMBA_CACHE_DIR/$(cat "$kernels/id")"
if [ ! -d "$cache" ]; then
    mkdir -p "$NUMBA_CACHE_DIR"
    copy=$(mktemp -d "$cache.XXXXXX")
    cp -Rp "$kernels/." "$copy"
    # Whole or not at all; another container on the same volume may have been first.
    mv -T "$copy" "$cache" 2>/dev/null || rm -r "$copy"
fi
export NUMBA_CACHE_DIR="$cache"
exec tercet "$@"
