package claims

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"stockproof/evidence"
	"stockproof/model"
	"stockproof/schemes"
)

// Identifiers of facts.
const (
	factRoundTrips = "round-trips" // of one operation that meets nobody
	factSlots      = "slots"       // of keys in a Redis cluster
)

// Facts counts and computes what is no verdict of a cell. It needs no server:
// the round trips are those of the real scheme code and the real go-redis on an
// embedded Redis.
func Facts(ctx context.Context) ([]evidence.Fact, error) {
	trips, err := roundTripsOf(ctx, "hincrby", "lua-hash", "lua-string", "lock")
	if err != nil {
		return nil, fmt.Errorf("count round trips: %w", err)
	}
	return []evidence.Fact{trips, slots()}, nil
}

// roundTripsOf counts how often a client writes to its connection before an
// operation has its answer: once a round trip, because nothing is pipelined.
func roundTripsOf(ctx context.Context, names ...string) (evidence.Fact, error) {
	f := evidence.Fact{ID: factRoundTrips, Values: map[string]float64{}}
	var said []string
	for _, name := range names {
		e, err := schemes.ByName(name)
		if err != nil {
			return f, err
		}
		counts, err := countTrips(ctx, e)
		if err != nil {
			return f, fmt.Errorf("%s: %w", name, err)
		}
		for what, n := range counts {
			f.Values[name+" "+what] = float64(n)
		}
		said = append(said, fmt.Sprintf("%s %d sold, %d sold out, %d after SCRIPT FLUSH", name, counts["sold"], counts["sold-out"], counts["flushed"]))
	}
	list := strings.Join(said, "; ")
	f.Says = text("round trips of one request that meets nobody: "+list, "单个请求无竞争时的往返次数："+list)
	return f, nil
}

// countTrips counts a sale, a refusal, and a sale after the server has forgotten
// its scripts.
func countTrips(ctx context.Context, e schemes.Entry) (map[string]int64, error) {
	server := miniredis.NewMiniRedis()
	defer server.Close()
	var writes atomic.Int64
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:0", MaxRetries: -1, PoolSize: 1, DisableIdentity: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			conn, err := server.Dial()
			return countedConn{conn, &writes}, err
		},
	})
	defer client.Close()
	env := schemes.Env{Redis: client, Client: "a"}
	const sku = "1001"
	if err := e.Scheme.(schemes.Loader).Load(ctx, env, sku, 2); err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for _, op := range []struct {
		name  string
		flush bool
		want  model.Outcome
	}{{"sold", false, model.Sold}, {"flushed", true, model.Sold}, {"sold-out", false, model.SoldOut}} {
		if op.flush {
			if err := client.ScriptFlush(ctx).Err(); err != nil {
				return nil, err
			}
		}
		before := writes.Load()
		outcome, err := e.Scheme.Deduct(ctx, env, schemes.Request{SKU: sku, Qty: 1, ID: op.name, Buyer: op.name})
		if err != nil || outcome != op.want {
			return nil, fmt.Errorf("%s: outcome %s, want %s: %w", op.name, outcome, op.want, err)
		}
		counts[op.name] = writes.Load() - before
	}
	return counts, nil
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// slotsOfCluster is how many slots a Redis cluster has.
const slotsOfCluster = 16384

// slots computes where keys lie. The keys are those of the notes and of the
// schemes.
func slots() evidence.Fact {
	const articles = 1000
	literal, tagged := map[uint16]bool{}, map[uint16]bool{}
	for id := range articles {
		literal[Slot(fmt.Sprintf("{product}:stock:%d", id))] = true
		tagged[Slot(fmt.Sprintf("{%d}:stock", id))] = true
	}
	same := func(a, b string) float64 {
		if Slot(a) == Slot(b) {
			return 1
		}
		return 0
	}
	v := map[string]float64{
		"articles": articles, "slots with {product}": float64(len(literal)), "slots with {id}": float64(len(tagged)),
		"stock and limit share a slot without a tag": same("stock:1001", "limit:1001:buyer"),
		"stock and limit share a slot with a tag":    same("{1001}:stock", "{1001}:limit:buyer"),
		"lock and its channel share a slot":          same("lock:1001", "redisson_lock__channel:{lock:1001}"),
	}
	return evidence.Fact{ID: factSlots, Values: v,
		Says: text(
			fmt.Sprintf("%d keys {product}:stock:<id> lie in %.0f slot of %d, %d keys {<id>}:stock in %.0f; stock:1001 and limit:1001:buyer do not share a slot, with the tag {1001} they do",
				articles, v["slots with {product}"], slotsOfCluster, articles, v["slots with {id}"]),
			fmt.Sprintf("%d 个键 {product}:stock:<id> 落在 %d 个槽中的 %.0f 个，%d 个键 {<id>}:stock 落在 %.0f 个；stock:1001 与 limit:1001:buyer 不同槽，加上标签 {1001} 后同槽",
				articles, slotsOfCluster, v["slots with {product}"], articles, v["slots with {id}"])),
	}
}

// Slot is the slot of a key: CRC-16/XMODEM of the key, or of what stands between
// the first { and the next } when that is not empty, modulo 16384. Source: the
// Redis cluster specification, key distribution model and hash tags.
func Slot(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if end := strings.IndexByte(key[open+1:], '}'); end > 0 {
			key = key[open+1 : open+1+end]
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % slotsOfCluster
}
