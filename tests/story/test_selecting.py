"""Which topics, partitions and messages a consumer takes."""

from tests.support.server import Server
from tests.support.shell import shell

FORM = "-F '%t %p %k %s\\n'"


def test_patterns_take_matching_topics_and_leave_excluded_ones(redis: Server) -> None:
    shell("for t in o-a o-b o-c p 'o*'; do mqctl produce $t \"in $t\"; done", redis)

    glob = shell("mqctl consume --topic-glob 'o-*' -g g -e -q | sort", redis)
    regex = shell(
        "mqctl consume --topic-regex 'o-.' --exclude-regex '.*b' -g h -e | sort", redis
    )
    named = shell("mqctl consume 'o*' -g i -e -q", redis)

    assert glob.out == b"in o-a\nin o-b\nin o-c\n"
    assert regex.out == b"in o-a\nin o-c\n"
    assert "matched: o-a, o-c" in regex.err
    assert named.out == b"in o*\n"


def test_a_new_topic_that_matches_is_picked_up(redis: Server) -> None:
    found = shell(
        "mqctl produce o-1 one; "
        "(sleep 0.5; mqctl produce o-2 two) & "
        "mqctl consume --topic-glob 'o-*' -g g -n 2 --rebalance 200ms --poll 100ms",
        redis,
    )

    assert sorted(found.out.split()) == [b"one", b"two"]
    assert "also matched: o-2" in found.err


def test_filters_acknowledge_what_they_skip(redis: Server) -> None:
    shell("seq 3 | mqctl produce t -k a; mqctl produce t x -k b -H tag=red", redis)

    by_key = shell("mqctl consume t -g g --where-key 'b*' -e -o ndjson", redis)
    by_tag = shell("mqctl consume t -g h --tag red -e", redis)
    by_header = shell("mqctl consume t -g i --where-header 'tag=r?d' -e", redis)

    assert b'"payload":"x"' in by_key.out
    assert '"received":1,"acked":4,"retried":0,"dead":0,"skipped":3' in by_key.err
    assert by_tag.out == by_header.out == b"x\n"
    assert redis.call("XPENDING", "stream:topic:t:p:0", "g")[0] == 0


def test_shards_and_partitions_take_what_they_name(redis: Server) -> None:
    shell("for p in 0 1 2 3; do mqctl produce t p$p -p $p --partitions 4; done", redis)

    even = shell("mqctl consume t -g g --shard 0/2 -e | sort", redis)
    odd = shell("mqctl consume t -g g -p 1,3 -e | sort", redis)

    assert even.out == b"p0\np2\n"
    assert odd.out == b"p1\np3\n"


def test_what_cannot_be_meant_is_refused(redis: Server) -> None:
    for wrong in ("", "t --shard 2/2", "t --shard x", "--topic-regex '('", "t -p 1-"):
        found = shell(f"mqctl consume {wrong} -g g", redis)
        assert found.code == 2, wrong
        assert found.err.startswith("mqctl: "), wrong
