#compdef mqctl
# Completion of mqctl for zsh. Written by mqctl docs.
_mqctl() {
  local at=mqctl word prev=${words[CURRENT-1]}
  local -a commands options
  for word in ${words[2,CURRENT-1]}; do
    if [[ $word == -- ]]; then
      _alternative 'commands:command:_command_names -e' 'files:file:_files'
      return
    fi
    case "$at $word" in
      ('mqctl produce' | 'mqctl consume' | 'mqctl tail' | 'mqctl ack' | 'mqctl retry' | 'mqctl dead' | 'mqctl admin' | 'mqctl admin topics' | 'mqctl admin exists' | 'mqctl admin info' | 'mqctl admin create' | 'mqctl admin partitions' | 'mqctl admin route' | 'mqctl admin delete' | 'mqctl admin groups' | 'mqctl admin group-stats' | 'mqctl admin consumers' | 'mqctl admin leases' | 'mqctl admin create-group' | 'mqctl admin delete-group' | 'mqctl admin pending' | 'mqctl admin retries' | 'mqctl admin recent' | 'mqctl admin range' | 'mqctl admin get' | 'mqctl dlq' | 'mqctl dlq topics' | 'mqctl dlq size' | 'mqctl dlq list' | 'mqctl dlq show' | 'mqctl dlq replay' | 'mqctl dlq replay-all' | 'mqctl dlq delete' | 'mqctl bench' | 'mqctl config' | 'mqctl config list' | 'mqctl config show' | 'mqctl config set' | 'mqctl config unset' | 'mqctl config use' | 'mqctl config path' | 'mqctl config explain' | 'mqctl server' | 'mqctl server start' | 'mqctl server stop' | 'mqctl server status' | 'mqctl server path' | 'mqctl server logs')
        at="$at $word" ;;
    esac
  done
  if [[ $PREFIX == --*=* ]]; then
    prev=${PREFIX%%=*}
    compset -P 1 '*='
  fi
  case "$at $prev" in
    (*' --input' | *' -i')
      compadd -- 'lines' 'null' 'raw' 'json' 'ndjson' 'csv'; return ;;
    (*' --file' | *' --resume' | *' --password-file' | *' --tls-ca' | *' --tls-cert' | *' --tls-key' | *' --ready-file')
      _files; return ;;
    (*' --delim' | *' -D' | *' --key' | *' -k' | *' --key-sep' | *' -K' | *' --header' | *' -H' | *' --partition' | *' -p' | *' --partitions' | *' --max-retries' | *' --batch' | *' --max-len' | *' --start-line' | *' --max-bytes' | *' --payload-ttl' | *' --delay' | *' --at' | *' --dedupe-key' | *' --dedupe-ttl' | *' --rate' | *' --profile' | *' --url' | *' -u' | *' --key-prefix' | *' --stream-key-prefix' | *' --env' | *' --group' | *' -g' | *' --topic-glob' | *' --topic-regex' | *' --exclude-regex' | *' --consumer' | *' --consumer-prefix' | *' --from' | *' --shard' | *' --weight' | *' --where-key' | *' --where-header' | *' --tag' | *' --workers' | *' --poll' | *' --max-in-flight' | *' --max-partitions' | *' --lease-ttl' | *' --renew' | *' --rebalance' | *' --claim-idle' | *' --claim-interval' | *' --claim-batch' | *' --max-attempts' | *' --backoff' | *' --retry-max' | *' --retry-base' | *' --retry-cap' | *' --mover-interval' | *' --mover-batch' | *' --max-messages' | *' -n' | *' --max-time' | *' --idle-exit' | *' --worker' | *' --keep' | *' --keep-for' | *' --keep-interval' | *' --ackset-ttl' | *' --stats' | *' --metrics-port' | *' --drain-timeout' | *' --format' | *' -F' | *' --handler-timeout' | *' --map' | *' --lines' | *' --to' | *' --grep' | *' --reason' | *' --min-idle' | *' --where-reason' | *' --since' | *' --until' | *' --max-replays' | *' --max' | *' --messages' | *' --duration' | *' --size' | *' --producers' | *' --consumers' | *' --warmup' | *' --timeout')
      _message value; return ;;
    (*' --max-len-mode')
      compadd -- 'exact' 'approx'; return ;;
    (*' --on-error')
      compadd -- 'stop' 'skip'; return ;;
    (*' --empty')
      compadd -- 'send' 'skip'; return ;;
    (*' --print')
      compadd -- 'none' 'id' 'ndjson'; return ;;
    (*' --color')
      compadd -- 'auto' 'always' 'never'; return ;;
    (*' --claim')
      compadd -- 'on' 'off' 'only'; return ;;
    (*' --retry-mode')
      compadd -- 'requeue' 'pending' 'in-place'; return ;;
    (*' --ack')
      compadd -- 'auto' 'manual' 'none'; return ;;
    (*' --java-codec')
      compadd -- 'auto' 'kryo5' 'string' 'json'; return ;;
    (*' --worker-proto')
      compadd -- 'ndjson' 'lines'; return ;;
    (*' --ack-delete')
      compadd -- 'none' 'immediate' 'all-groups-ack'; return ;;
    (*' --output' | *' -o')
      compadd -- 'table' 'ndjson' 'json' 'csv' 'raw' 'none'; return ;;
    (*' --stdin')
      compadd -- 'payload' 'envelope' 'none'; return ;;
    (*' --sort')
      compadd -- 'idle' 'deliveries' 'id'; return ;;
    (*' --fsync')
      compadd -- 'always' 'everysec' 'no'; return ;;
  esac
  case $at in
    ('mqctl')
      commands=(
        'produce:Store messages in a topic.'
        'consume:Print messages of a group, or run a command for each.'
        'tail:Show the last messages of topics; joins no group, changes nothing.'
        'ack:Acknowledge messages by their receipts.'
        'retry:Schedule messages again by their receipts.'
        'dead:Make messages dead letters by their receipts.'
        'admin:Look at topics and groups, make them, remove them.'
        'dlq:Dead letters: look at them, send them back, delete them.'
        'bench:Measure how fast messages are stored and received on this server.'
        'config:Profiles: named sets of settings, kept in a file.'
        'server:The embedded server that holds local topics.')
      options=(
        '--version:Show the version.'
        '--help:Show this message and exit.') ;;
    ('mqctl produce')
      commands=()
      options=(
        '--input:What the input is: lines, null (NUL-delimited), raw (all of it is one message), json (a JSON value per line), ndjson (envelopes), csv.'
        '-i:What the input is: lines, null (NUL-delimited), raw (all of it is one message), json (a JSON value per line), ndjson (envelopes), csv.'
        '--file:Read this file instead; repeatable.'
        '--delim:Delimiter instead of a newline.'
        '-D:Delimiter instead of a newline.'
        '--null:The same as -i null.'
        '-0:The same as -i null.'
        '--key:Key of every message.'
        '-k:Key of every message.'
        '--key-sep:Split each line at the first STR: key, payload.'
        '-K:Split each line at the first STR: key, payload.'
        '--header:A header; repeatable.'
        '-H:A header; repeatable.'
        '--partition:The partition, whatever the key.'
        '-p:The partition, whatever the key.'
        '--partitions:Partitions of a topic that is created.'
        '--no-create:Refuse a topic that does not exist (4).'
        '--max-retries:Retries stored in each message.'
        '--batch:Messages in one pipelined batch.'
        '--max-len:Cut each partition to N entries on write, unread ones too; 0 = never.'
        '--max-len-mode:How exactly --max-len cuts.'
        '--start-line:Skip the lines before this one.'
        '--max-bytes:Largest message accepted.'
        '--payload-ttl:Life of bodies stored aside, read or not; 0 = they stay.'
        '--delay:Deliver them this much later.'
        '--at:Deliver them at this time.'
        '--dedupe-key:Count, do not store, a second message with this key; header:NAME takes each message'\''s header.'
        '--dedupe-ttl:How long a dedupe key is remembered.'
        '--keep-partition:With -i ndjson: the envelope'\''s partition.'
        '--on-error:At a bad line: stop (65), or skip and exit 3.'
        '--empty:What to do with empty lines.'
        '--resume:Send what an earlier --print ndjson does not list as stored.'
        '--rate:At most so many messages.'
        '--print:Print what was stored: its id, or a JSON object.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl consume')
      commands=()
      options=(
        '--group:The consumer group.'
        '-g:The consumer group.'
        '--topic-glob:Topics of these names.'
        '--topic-regex:Topics whose whole name matches; new ones are picked up.'
        '--exclude-regex:But not these topics.'
        '--consumer:Name of this consumer.'
        '--consumer-prefix:Before the 8 digits of a unique name.'
        '--create:Create topics that do not exist.'
        '--partitions:Partitions of a topic that is created.'
        '--from:Where a new group begins: start, end, an id, @TIME, -2h, last:N.'
        '--partition:Only these partitions.'
        '-p:Only these partitions.'
        '--shard:Only the partitions with index mod M = R.'
        '--weight:Share of partitions against other consumers.'
        '--where-key:Only messages of these keys.'
        '--where-header:Only messages with this header; repeatable.'
        '--tag:Only messages of this tag.'
        '--workers:Partitions handled at the same time.'
        '--batch:Messages read ahead.'
        '--poll:How long one wait at the server lasts.'
        '--max-in-flight:Most messages in hand; 0 = no bound.'
        '--max-partitions:Most partitions held; 0 = no bound.'
        '--lease-ttl:Life of a partition lease.'
        '--renew:How often leases are renewed.'
        '--rebalance:How often topics are looked at.'
        '--claim-idle:Idle time after which entries are taken over.'
        '--claim-interval:Longest pause between scans.'
        '--claim-batch:Page size of the take-over.'
        '--claim:Take over abandoned entries: on, off, or do only that.'
        '--retry-mode:Send a failed message again, leave it pending, or wait for it.'
        '--ordered:Strict order: the same as --retry-mode in-place.'
        '--max-attempts:The same as --retry-max N-1.'
        '--backoff:Delay of each retry instead of --retry-base and --retry-cap.'
        '--retry-max:Retries after the first attempt.'
        '--retry-base:Delay of the first retry.'
        '--retry-cap:Longest delay of a retry.'
        '--mover-interval:Longest pause of the retry mover.'
        '--mover-batch:Retries moved at a time.'
        '--max-messages:End after N messages.'
        '-n:End after N messages.'
        '--max-time:End after this time.'
        '--idle-exit:End when nothing came for this long.'
        '--exit-when-empty:End when nothing is left.'
        '-e:End when nothing is left.'
        '--fail-if-empty:Exit 5 when nothing was received.'
        '--ack:Acknowledge what was printed, or hand out receipts.'
        '--java-codec:Codec of the dead letters written.'
        '--worker:Let N processes of the command stay and take message after message.'
        '--worker-proto:Envelopes in and JSON answers out, or payload lines and words.'
        '--keep:Trim what all groups have finished to the newest N; 0 = never.'
        '--keep-for:Trim finished entries older than this.'
        '--keep-interval:How often to trim.'
        '--keep-payloads:Keep finished entries with a large body.'
        '--ack-delete:Remove entries once acknowledged: by this group, by all groups.'
        '--ackset-ttl:Life of the sets of groups that did.'
        '--honor-defer-ack:Leave messages with x-defer-ack pending for their receipts.'
        '--stats:Print statistics this often; 0 = never.'
        '--ready-file:Create this file when the first partition is held.'
        '--metrics-port:Serve Prometheus metrics, on localhost unless a host is given.'
        '--drain-timeout:Longest wait for work at the end.'
        '--output:How messages are printed.'
        '-o:How messages are printed.'
        '--format:Format string, such as '\''%p %o %k: %s\n'\''.'
        '-F:Format string, such as '\''%p %o %k: %s\n'\''.'
        '--delim:After each payload of -o raw.'
        '-D:After each payload of -o raw.'
        '--json-payload:Embed JSON payloads as they are.'
        '--stdin:What a command gets on its standard input.'
        '--handler-timeout:Stop a command after this time: a retry.'
        '--map:Exit status rules, such as 3=dead,10-19=retry:30s.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl tail')
      commands=()
      options=(
        '--lines:How many, over all partitions.'
        '-n:How many, over all partitions.'
        '--follow:Go on with what is appended.'
        '-f:Go on with what is appended.'
        '--from:Where to begin: start, end, an id, @TIME, -2h, last:N.'
        '--to:Where to end.'
        '--partition:Only these partitions.'
        '-p:Only these partitions.'
        '--where-key:Only messages whose key matches.'
        '--where-header:Only messages with such a header; repeatable.'
        '--grep:Only payloads in which this is found.'
        '--dlq:Look at the dead letters instead.'
        '--output:raw, ndjson, json, csv, table or none.'
        '-o:raw, ndjson, json, csv, table or none.'
        '--format:Format string, such as '\''%p %o %k: %s\n'\''.'
        '-F:Format string, such as '\''%p %o %k: %s\n'\''.'
        '--delim:After each payload of -o raw.'
        '-D:After each payload of -o raw.'
        '--json-payload:Embed JSON payloads as they are.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl ack')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl retry')
      commands=()
      options=(
        '--delay:When to try again.'
        '--reason:Why, for people.'
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl dead')
      commands=()
      options=(
        '--reason:Why, for people.'
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin')
      commands=(
        'topics:List the topics.'
        'exists:Tell whether a topic, or a group of it, exists; exit 4 when not.'
        'info:Show a topic: sizes, ids, groups, retries, dead letters, memory.'
        'create:Create a topic; one that exists with as many partitions is left alone.'
        'partitions:Show how many partitions a topic has.'
        'route:Show which partition keys go to.'
        'delete:Delete a topic with everything it owns: messages, groups, dead letters.'
        'groups:List the groups of a topic with their lag.'
        'group-stats:Show where a group stands on each partition.'
        'consumers:List the consumers of a group: alive, idle or gone.'
        'leases:List who holds which partition.'
        'create-group:Create a group on all partitions of a topic.'
        'delete-group:Delete a group with its position and what it has pending.'
        'pending:List what a group has been given and not acknowledged, longest idle first.'
        'retries:List what waits in the retry bucket, next due first.'
        'recent:Show the newest messages of a topic, newest first.'
        'range:Show messages of one partition between two positions, both included.'
        'get:Show the message with an id; those of all partitions that have it.')
      options=(
        '--help:Show this message and exit.') ;;
    ('mqctl admin topics')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin exists')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin info')
      commands=()
      options=(
        '--partitions:A row for each partition.'
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin create')
      commands=()
      options=(
        '--partitions:How many partitions it has.'
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin partitions')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin route')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin delete')
      commands=()
      options=(
        '--yes:Do it without asking.'
        '-y:Do it without asking.'
        '--dry-run:Only show what would be done.'
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin groups')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin group-stats')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin consumers')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin leases')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin create-group')
      commands=()
      options=(
        '--from:Where it begins: start, end, an id, @TIME, -2h, last:N.'
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin delete-group')
      commands=()
      options=(
        '--force:Even while its consumers run.'
        '--yes:Do it without asking.'
        '-y:Do it without asking.'
        '--dry-run:Only show what would be done.'
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin pending')
      commands=()
      options=(
        '--lines:How many; 0 = all.'
        '-n:How many; 0 = all.'
        '--sort:What comes first.'
        '--asc:The least first.'
        '--min-idle:Only what is idle for so long.'
        '--consumer:Only what this consumer holds.'
        '--count:Only count them.'
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin retries')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin recent')
      commands=()
      options=(
        '--lines:How many; 0 = all.'
        '-n:How many; 0 = all.'
        '--per-partition:As many of each partition.'
        '--output:ndjson, json, csv, raw, table or none.'
        '-o:ndjson, json, csv, raw, table or none.'
        '--format:Format string, such as '\''%p %o %k: %s\n'\''.'
        '-F:Format string, such as '\''%p %o %k: %s\n'\''.'
        '--delim:After each payload of -o raw.'
        '-D:After each payload of -o raw.'
        '--json-payload:Embed JSON payloads as they are.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin range')
      commands=()
      options=(
        '--lines:How many; 0 = all.'
        '-n:How many; 0 = all.'
        '--reverse:Newest first.'
        '--output:ndjson, json, csv, raw, table or none.'
        '-o:ndjson, json, csv, raw, table or none.'
        '--format:Format string, such as '\''%p %o %k: %s\n'\''.'
        '-F:Format string, such as '\''%p %o %k: %s\n'\''.'
        '--delim:After each payload of -o raw.'
        '-D:After each payload of -o raw.'
        '--json-payload:Embed JSON payloads as they are.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl admin get')
      commands=()
      options=(
        '--output:ndjson, json, csv, raw, table or none.'
        '-o:ndjson, json, csv, raw, table or none.'
        '--format:Format string, such as '\''%p %o %k: %s\n'\''.'
        '-F:Format string, such as '\''%p %o %k: %s\n'\''.'
        '--delim:After each payload of -o raw.'
        '-D:After each payload of -o raw.'
        '--json-payload:Embed JSON payloads as they are.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl dlq')
      commands=(
        'topics:List the topics that have dead letters.'
        'size:Count the dead letters of a topic.'
        'list:List dead letters, newest first.'
        'show:Show a dead letter with everything that is known of its end.'
        'replay:Send dead letters back to where they came from; they stay unless --delete.'
        'replay-all:Send back all dead letters that are there now, oldest first.'
        'delete:Delete dead letters by their ids.')
      options=(
        '--help:Show this message and exit.') ;;
    ('mqctl dlq topics')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl dlq size')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl dlq list')
      commands=()
      options=(
        '--lines:How many; 0 = all.'
        '-n:How many; 0 = all.'
        '--where-reason:Only those whose reason matches, in any case.'
        '--where-key:Only messages whose key matches.'
        '--since:Given up since then: 2h, @TIME, an id.'
        '--until:Given up before: 2h, @TIME, an id.'
        '--full:Whole messages, as envelopes.'
        '--output:ndjson, json, csv, raw, table or none.'
        '-o:ndjson, json, csv, raw, table or none.'
        '--format:Format string, such as '\''%p %o %k: %s\n'\''.'
        '-F:Format string, such as '\''%p %o %k: %s\n'\''.'
        '--delim:After each payload of -o raw.'
        '-D:After each payload of -o raw.'
        '--json-payload:Embed JSON payloads as they are.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl dlq show')
      commands=()
      options=(
        '--output:ndjson, json, csv, raw, table or none.'
        '-o:ndjson, json, csv, raw, table or none.'
        '--format:Format string, such as '\''%p %o %k: %s\n'\''.'
        '-F:Format string, such as '\''%p %o %k: %s\n'\''.'
        '--delim:After each payload of -o raw.'
        '-D:After each payload of -o raw.'
        '--json-payload:Embed JSON payloads as they are.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl dlq replay')
      commands=()
      options=(
        '--delete:Move them: each is deleted with its copy.'
        '--max-replays:Skip messages replayed that often already.'
        '--to:Copy to this topic instead.'
        '--all-groups:For all groups, not the one that gave it up.'
        '--again:Also those that were replayed before.'
        '--yes:Do it without asking.'
        '-y:Do it without asking.'
        '--dry-run:Only show what would be done.'
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl dlq replay-all')
      commands=()
      options=(
        '--max:At most N; 0 = all.'
        '--rate:No faster than this.'
        '--where-reason:Only those whose reason matches, in any case.'
        '--delete:Move them: each is deleted with its copy.'
        '--max-replays:Skip messages replayed that often already.'
        '--to:Copy to this topic instead.'
        '--all-groups:For all groups, not the one that gave it up.'
        '--again:Also those that were replayed before.'
        '--yes:Do it without asking.'
        '-y:Do it without asking.'
        '--dry-run:Only show what would be done.'
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl dlq delete')
      commands=()
      options=(
        '--yes:Do it without asking.'
        '-y:Do it without asking.'
        '--dry-run:Only show what would be done.'
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl bench')
      commands=()
      options=(
        '--messages:How many messages.'
        '--duration:How long, unless --messages are done before.'
        '--size:Bytes of each message, 28B or more.'
        '--partitions:Partitions of the topic.'
        '--batch:Messages in one pipelined batch of a producer.'
        '--producers:Processes that store messages.'
        '--consumers:Processes that receive messages.'
        '--rate:Send so many, evenly; latency counts from when each is due.'
        '--warmup:Work for this long before anything is counted.'
        '--keep:Keep the topic, and say its name.'
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl config')
      commands=(
        'list:List the profiles.'
        'show:Show what a profile sets; a password is shown as ***.'
        'set:Set a value in the current profile, or in the one of --profile.'
        'unset:Remove a value from the current profile, or from the one of --profile.'
        'use:Make a profile the current one; `default` is the one without settings.'
        'path:Print where the file is, or would be.'
        'explain:Tell each setting'\''s value and where it is from: flag, env, profile or default.')
      options=(
        '--help:Show this message and exit.') ;;
    ('mqctl config list')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl config show')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl config set')
      commands=()
      options=(
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl config unset')
      commands=()
      options=(
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl config use')
      commands=()
      options=(
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl config path')
      commands=()
      options=(
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl config explain')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl server')
      commands=(
        'start:Start the server if it does not run.'
        'stop:Stop the server; what it stored stays.'
        'status:Tell whether the server runs; exit 4 when it does not.'
        'path:Print the server'\''s data directory.'
        'logs:Print the last lines of the server'\''s log.')
      options=(
        '--help:Show this message and exit.') ;;
    ('mqctl server start')
      commands=()
      options=(
        '--fsync:When the append-only file is forced to disk.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl server stop')
      commands=()
      options=(
        '--timeout:How long to wait for it to end.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl server status')
      commands=()
      options=(
        '--output:How records are printed.'
        '-o:How records are printed.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl server path')
      commands=()
      options=(
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
    ('mqctl server logs')
      commands=()
      options=(
        '--lines:How many lines.'
        '-n:How many lines.'
        '--profile:Take the settings of this profile.'
        '--url:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '-u:Where messages live: local, redis://, rediss://, valkey://, unix://.'
        '--password-file:File whose first line is the password.'
        '--tls-ca:PEM file of the authority.'
        '--tls-cert:PEM file of our certificate.'
        '--tls-key:PEM file of our key.'
        '--insecure:Do not verify the server'\''s certificate.'
        '--key-prefix:Prefix of control keys.'
        '--stream-key-prefix:Prefix of streams.'
        '--env:Add _NAME to every topic name.'
        '--quiet:No notes, no summary.'
        '-q:No notes, no summary.'
        '--verbose:Say more.'
        '-v:Say more.'
        '--color:Colours on a terminal: auto, always, never.'
        '--help:Show this message and exit.') ;;
  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
  else
    _describe command commands
  fi
}
if [[ ${funcstack[1]} == _mqctl ]]; then
  _mqctl "$@"
else
  compdef _mqctl mqctl
fi
