#!/usr/bin/env bash
# What the broker of the tests needs from a shell.
#   kafka.sh fetch CACHE_DIR [VERSION]      the broker's jars from Maven into a cache, once; needs mvn
#   kafka.sh guard OWNER_PID DATA_DIR       ends the broker of DATA_DIR and deletes it when OWNER_PID is gone
set -euo pipefail

fetch() {
  local cache="${1:?cache directory}" version="${2:-4.4.0}" log4j="${KAFKA_LOG4J:-2.25.5}" work
  [ -f "$cache/.complete" ] && return 0
  mkdir -p "$cache"
  work="$(mktemp -d "$cache/fetch-XXXXXX")"
  trap "rm -rf '$work'" EXIT
  cat > "$work/pom.xml" <<X
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
 <groupId>local</groupId><artifactId>kafka-broker</artifactId><version>1</version><packaging>pom</packaging>
 <dependencies>
  <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
  <dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>$log4j</version></dependency>
 </dependencies></project>
X
  (cd "$work" && mvn -B -q -ntp dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=libs)
  if [ ! -f "$cache/.complete" ]; then
    rm -rf "$cache/libs"
    mv "$work/libs" "$cache/libs"
    touch "$cache/.complete"
  fi
}

guard() {
  local owner="${1:?owner}" data="${2:?data directory}" file
  while kill -0 "$owner" 2>/dev/null && [ -d "$data" ]; do sleep 0.5; done
  # Below a shared directory too: whichever guard deletes it must not hide a broker from the other.
  for file in "$data/broker.pid" "$data"/*/broker.pid; do
    [ -f "$file" ] && kill -KILL "$(cat "$file")" 2>/dev/null || true
  done
  for _ in 1 2 3; do rm -rf "$data" && break; sleep 0.5; done
}

case "${1:-}" in
  fetch | guard) "$@" ;;
  *) sed -n 2,4p "$0" >&2; exit 2 ;;
esac
