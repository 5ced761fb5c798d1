# Completion of mqctl for bash. Written by mqctl docs.
_mqctl_files() {
  COMPREPLY=($(compgen -f -- "$cur"))
  compopt -o filenames 2>/dev/null  # not in bash 3
}
_mqctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local at=mqctl words='' commands='' options='' word i IFS=$'\n'
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -- ]]; then
      COMPREPLY=($(compgen -f -c -- "$cur"))
      return
    fi
    case "$at $word" in
      'mqctl produce' | 'mqctl consume' | 'mqctl tail' | 'mqctl ack' | 'mqctl retry' | 'mqctl dead' | 'mqctl admin' | 'mqctl admin topics' | 'mqctl admin exists' | 'mqctl admin info' | 'mqctl admin create' | 'mqctl admin partitions' | 'mqctl admin route' | 'mqctl admin delete' | 'mqctl admin groups' | 'mqctl admin group-stats' | 'mqctl admin consumers' | 'mqctl admin leases' | 'mqctl admin create-group' | 'mqctl admin delete-group' | 'mqctl admin pending' | 'mqctl admin retries' | 'mqctl admin recent' | 'mqctl admin range' | 'mqctl admin get' | 'mqctl dlq' | 'mqctl dlq topics' | 'mqctl dlq size' | 'mqctl dlq list' | 'mqctl dlq show' | 'mqctl dlq replay' | 'mqctl dlq replay-all' | 'mqctl dlq delete' | 'mqctl bench' | 'mqctl config' | 'mqctl config list' | 'mqctl config show' | 'mqctl config set' | 'mqctl config unset' | 'mqctl config use' | 'mqctl config path' | 'mqctl config explain' | 'mqctl server' | 'mqctl server start' | 'mqctl server stop' | 'mqctl server status' | 'mqctl server path' | 'mqctl server logs')
        at="$at $word" ;;
    esac
  done
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  case "$at $prev" in
    *' --input' | *' -i')
      words='lines
null
raw
json
ndjson
csv' ;;
    *' --file' | *' --resume' | *' --password-file' | *' --tls-ca' | *' --tls-cert' | *' --tls-key' | *' --ready-file')
      _mqctl_files; return ;;
    *' --delim' | *' -D' | *' --key' | *' -k' | *' --key-sep' | *' -K' | *' --header' | *' -H' | *' --partition' | *' -p' | *' --partitions' | *' --max-retries' | *' --batch' | *' --max-len' | *' --start-line' | *' --max-bytes' | *' --payload-ttl' | *' --delay' | *' --at' | *' --dedupe-key' | *' --dedupe-ttl' | *' --rate' | *' --profile' | *' --url' | *' -u' | *' --key-prefix' | *' --stream-key-prefix' | *' --env' | *' --group' | *' -g' | *' --topic-glob' | *' --topic-regex' | *' --exclude-regex' | *' --consumer' | *' --consumer-prefix' | *' --from' | *' --shard' | *' --weight' | *' --where-key' | *' --where-header' | *' --tag' | *' --workers' | *' --poll' | *' --max-in-flight' | *' --max-partitions' | *' --lease-ttl' | *' --renew' | *' --rebalance' | *' --claim-idle' | *' --claim-interval' | *' --claim-batch' | *' --max-attempts' | *' --backoff' | *' --retry-max' | *' --retry-base' | *' --retry-cap' | *' --mover-interval' | *' --mover-batch' | *' --max-messages' | *' -n' | *' --max-time' | *' --idle-exit' | *' --worker' | *' --keep' | *' --keep-for' | *' --keep-interval' | *' --ackset-ttl' | *' --stats' | *' --metrics-port' | *' --drain-timeout' | *' --format' | *' -F' | *' --handler-timeout' | *' --map' | *' --lines' | *' --to' | *' --grep' | *' --reason' | *' --min-idle' | *' --where-reason' | *' --since' | *' --until' | *' --max-replays' | *' --max' | *' --messages' | *' --duration' | *' --size' | *' --producers' | *' --consumers' | *' --warmup' | *' --timeout')
      return ;;
    *' --max-len-mode')
      words='exact
approx' ;;
    *' --on-error')
      words='stop
skip' ;;
    *' --empty')
      words='send
skip' ;;
    *' --print')
      words='none
id
ndjson' ;;
    *' --color')
      words='auto
always
never' ;;
    *' --claim')
      words='on
off
only' ;;
    *' --retry-mode')
      words='requeue
pending
in-place' ;;
    *' --ack')
      words='auto
manual
none' ;;
    *' --java-codec')
      words='auto
kryo5
string
json' ;;
    *' --worker-proto')
      words='ndjson
lines' ;;
    *' --ack-delete')
      words='none
immediate
all-groups-ack' ;;
    *' --output' | *' -o')
      words='table
ndjson
json
csv
raw
none' ;;
    *' --stdin')
      words='payload
envelope
none' ;;
    *' --sort')
      words='idle
deliveries
id' ;;
    *' --fsync')
      words='always
everysec
no' ;;
    *)
      case $at in
      'mqctl')
        commands='produce
consume
tail
ack
retry
dead
admin
dlq
bench
config
server'
        options='--version
--help' ;;
      'mqctl produce')
        commands=''
        options='--input
-i
--file
--delim
-D
--null
-0
--key
-k
--key-sep
-K
--header
-H
--partition
-p
--partitions
--no-create
--max-retries
--batch
--max-len
--max-len-mode
--start-line
--max-bytes
--payload-ttl
--delay
--at
--dedupe-key
--dedupe-ttl
--keep-partition
--on-error
--empty
--resume
--rate
--print
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl consume')
        commands=''
        options='--group
-g
--topic-glob
--topic-regex
--exclude-regex
--consumer
--consumer-prefix
--create
--partitions
--from
--partition
-p
--shard
--weight
--where-key
--where-header
--tag
--workers
--batch
--poll
--max-in-flight
--max-partitions
--lease-ttl
--renew
--rebalance
--claim-idle
--claim-interval
--claim-batch
--claim
--retry-mode
--ordered
--max-attempts
--backoff
--retry-max
--retry-base
--retry-cap
--mover-interval
--mover-batch
--max-messages
-n
--max-time
--idle-exit
--exit-when-empty
-e
--fail-if-empty
--ack
--java-codec
--worker
--worker-proto
--keep
--keep-for
--keep-interval
--keep-payloads
--ack-delete
--ackset-ttl
--honor-defer-ack
--stats
--ready-file
--metrics-port
--drain-timeout
--output
-o
--format
-F
--delim
-D
--json-payload
--stdin
--handler-timeout
--map
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl tail')
        commands=''
        options='--lines
-n
--follow
-f
--from
--to
--partition
-p
--where-key
--where-header
--grep
--dlq
--output
-o
--format
-F
--delim
-D
--json-payload
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl ack')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl retry')
        commands=''
        options='--delay
--reason
--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl dead')
        commands=''
        options='--reason
--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin')
        commands='topics
exists
info
create
partitions
route
delete
groups
group-stats
consumers
leases
create-group
delete-group
pending
retries
recent
range
get'
        options='--help' ;;
      'mqctl admin topics')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin exists')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin info')
        commands=''
        options='--partitions
--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin create')
        commands=''
        options='--partitions
--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin partitions')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin route')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin delete')
        commands=''
        options='--yes
-y
--dry-run
--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin groups')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin group-stats')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin consumers')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin leases')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin create-group')
        commands=''
        options='--from
--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin delete-group')
        commands=''
        options='--force
--yes
-y
--dry-run
--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin pending')
        commands=''
        options='--lines
-n
--sort
--asc
--min-idle
--consumer
--count
--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin retries')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin recent')
        commands=''
        options='--lines
-n
--per-partition
--output
-o
--format
-F
--delim
-D
--json-payload
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin range')
        commands=''
        options='--lines
-n
--reverse
--output
-o
--format
-F
--delim
-D
--json-payload
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl admin get')
        commands=''
        options='--output
-o
--format
-F
--delim
-D
--json-payload
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl dlq')
        commands='topics
size
list
show
replay
replay-all
delete'
        options='--help' ;;
      'mqctl dlq topics')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl dlq size')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl dlq list')
        commands=''
        options='--lines
-n
--where-reason
--where-key
--since
--until
--full
--output
-o
--format
-F
--delim
-D
--json-payload
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl dlq show')
        commands=''
        options='--output
-o
--format
-F
--delim
-D
--json-payload
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl dlq replay')
        commands=''
        options='--delete
--max-replays
--to
--all-groups
--again
--yes
-y
--dry-run
--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl dlq replay-all')
        commands=''
        options='--max
--rate
--where-reason
--delete
--max-replays
--to
--all-groups
--again
--yes
-y
--dry-run
--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl dlq delete')
        commands=''
        options='--yes
-y
--dry-run
--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl bench')
        commands=''
        options='--messages
--duration
--size
--partitions
--batch
--producers
--consumers
--rate
--warmup
--keep
--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl config')
        commands='list
show
set
unset
use
path
explain'
        options='--help' ;;
      'mqctl config list')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl config show')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl config set')
        commands=''
        options='--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl config unset')
        commands=''
        options='--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl config use')
        commands=''
        options='--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl config path')
        commands=''
        options='--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl config explain')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl server')
        commands='start
stop
status
path
logs'
        options='--help' ;;
      'mqctl server start')
        commands=''
        options='--fsync
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl server stop')
        commands=''
        options='--timeout
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl server status')
        commands=''
        options='--output
-o
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl server path')
        commands=''
        options='--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      'mqctl server logs')
        commands=''
        options='--lines
-n
--profile
--url
-u
--password-file
--tls-ca
--tls-cert
--tls-key
--insecure
--key-prefix
--stream-key-prefix
--env
--quiet
-q
--verbose
-v
--color
--help' ;;
      esac
      words=$commands
      [[ $cur != -* ]] || words=$options ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _mqctl mqctl
