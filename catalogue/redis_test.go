package catalogue

import (
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/live/servers"
	"stockproof/model"
	"stockproof/schemes"
)

// scenario is an entry with what makes it happen.
type scenario struct {
	Entry
	run func(*shop) Numbers
}

func laws(list ...model.Property) []model.Property { return list }

// Decrement, and give back on the client.
var giveBack = []scenario{
	{Entry{ID: "O-01", Title: "Readers see a negative counter", Scheme: "hincrby", Fault: "none", Breaks: laws(model.NegativeTransient),
		Expected: Numbers{"S": 1, "R": 3, "yes": 1, "lowest": -2, "final": 0}, Schedules: []string{"hincrby-false-sold-out"}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			yes, lowest := int64(0), int64(0)
			for range 3 {
				n := s.decr(s.r)
				if lowest = min(lowest, n); n >= 0 {
					yes++
				}
			}
			s.incr(s.r, 1)
			return Numbers{"S": 1, "R": 3, "yes": yes, "lowest": lowest, "final": s.incr(s.r, 1)}
		}},
	{Entry{ID: "O-02", Title: "A big request hides stock from a small one", Scheme: "hincrby", Fault: "none", Breaks: laws(model.FalseSoldOut),
		Expected: Numbers{"S": 1, "R": 2, "yes": 0, "final": 1}, Schedules: []string{"hincrby-false-sold-out"}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			refused := int64(0)
			if s.incr(s.r, -5) < 0 {
				refused++
			}
			if s.incr(s.r, -1) < 0 {
				refused++
			}
			s.incr(s.r, 5)
			return Numbers{"S": 1, "R": 2, "yes": 2 - refused, "refused": refused, "final": s.incr(s.r, 1)}
		}},
	{Entry{ID: "O-03", Title: "The client dies between decrement and give-back", Scheme: "hincrby", Fault: "client-crash", Breaks: laws(model.NegativePermanent),
		Expected: Numbers{"S": 1, "R": 2, "yes": 1, "final": -1, "yes after the cancel": 0, "final after the cancel": 0}, Schedules: []string{"hincrby-crash-lost-units"}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			yes := s.buy(s.r, 2) // the second is gone before it gives back
			n := Numbers{"S": 1, "R": 2, "yes": yes, "final": s.stock(s.r)}
			n["final after the cancel"], n["yes after the cancel"] = s.incr(s.r, 1), yes-1
			return n
		}},
	{Entry{ID: "O-04", Title: "No give-back at all, then a restock", Scheme: "hincrby without give-back", Fault: "none", Breaks: laws(model.NegativePermanent),
		Expected: Numbers{"S": 2, "R": 6, "yes": 2, "final": -4, "final after 2 came back": -2, "yes after": 2}},
		func(s *shop) Numbers {
			s.load(s.r, 2)
			n := Numbers{"S": 2, "R": 6, "yes": s.buy(s.r, 6), "final": s.stock(s.r)}
			n["final after 2 came back"] = s.incr(s.r, 2)
			n["yes after"] = n["yes"] + s.buy(s.r, 1)
			return n
		}},
	{Entry{ID: "O-05", Title: "The timeout was a lost request; the client gives back anyway", Scheme: "hincrby that gives back on error", Fault: "request-lost", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 3, "yes": 2, "final": 0}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			a := s.behind(func(n int) (bool, bool) { return n == 1, false }, -1)
			require.Error(s, a.Decr(s.ctx, s.key()).Err())
			require.EqualValues(s, 2, s.incr(a, 1))
			return Numbers{"S": 1, "R": 3, "yes": s.buy(s.r, 2), "final": s.stock(s.r)}
		}},
	{Entry{ID: "O-06", Title: "The timeout was a lost reply; the client does nothing", Scheme: "hincrby, lua-string", Fault: "reply-lost", Breaks: laws(model.LostUnits),
		Expected: Numbers{"S": 2, "R": 1, "yes": 0, "final": 1}, Schedules: []string{"hincrby-reply-lost-lost-units", "lua-string-reply-lost-lost-units"}},
		func(s *shop) Numbers {
			s.load(s.r, 2)
			a := s.behind(func(int) (bool, bool) { return false, true }, -1)
			require.Error(s, a.Decr(s.ctx, s.key()).Err())
			return Numbers{"S": 2, "R": 1, "yes": 0, "final": s.stock(s.r)}
		}},
	{Entry{ID: "O-07", Title: "The give-back itself is repeated", Scheme: "hincrby", Fault: "reply-lost, with retries of the library", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 3, "yes": 2, "final": 0}, Schedules: []string{"hincrby-reply-lost-retried-oversell"}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			yes := s.buy(s.r, 1)
			y := s.behind(func(n int) (bool, bool) { return false, n == 2 }, 1)
			require.EqualValues(s, -1, s.decr(y))
			require.EqualValues(s, 1, s.incr(y, 1), "executed twice")
			return Numbers{"S": 1, "R": 3, "yes": yes + s.buy(s.r, 1), "final": s.stock(s.r)}
		}},
	{Entry{ID: "O-08", Title: "The client library repeats the deduction", Scheme: "hincrby, lua-string", Fault: "reply-lost, with retries of the library", Breaks: laws(model.LostUnits),
		Expected: Numbers{"S": 100, "R": 1, "yes": 0, "final": 96, "yes when the last reply arrives": 1, "final then": 96}},
		func(s *shop) Numbers {
			s.load(s.r, 100)
			all := s.behind(func(int) (bool, bool) { return false, true }, 3) // as go-redis does when nothing is said
			require.Error(s, all.Decr(s.ctx, s.key()).Err())
			n := Numbers{"S": 100, "R": 1, "yes": 0, "final": s.stock(s.r)}
			s.load(s.r, 100)
			last := s.behind(func(i int) (bool, bool) { return false, i < 4 }, 3)
			if s.decr(last) >= 0 {
				n["yes when the last reply arrives"] = 1
			}
			n["final then"] = s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-09", Title: "The give-back lands on the other side of a failover", Scheme: "hincrby", Fault: "redis-failover", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 4, "yes": 3, "final": 0}, Schedules: []string{"hincrby-redis-failover-async-oversell"}},
		func(s *shop) Numbers {
			server, old := s.own(servers.RedisOptions{Replica: true})
			next := s.at(server.Replica.Addr)
			s.load(old, 1)
			require.NoError(s, old.Wait(s.ctx, 1, 10*time.Second).Err())
			require.NoError(s, server.Replica.CutLink(s.ctx, server.Node))
			yes := s.buy(old, 2)
			require.NoError(s, server.Replica.Promote(s.ctx))
			require.EqualValues(s, 2, s.incr(next, 1))
			return Numbers{"S": 1, "R": 4, "yes": yes + s.buy(next, 2), "final": s.stock(next)}
		}},
	{Entry{ID: "O-10", Title: "A stray decrement before the preload poisons “set if absent”", Scheme: "hincrby", Fault: "none", Breaks: laws(model.FalseSoldOut),
		Expected: Numbers{"S": 100, "R": 1, "yes": 0, "final": 0}},
		func(s *shop) Numbers {
			require.EqualValues(s, -1, s.decr(s.r))
			s.incr(s.r, 1)
			set, err := s.r.SetNX(s.ctx, s.key(), 100, 0).Result()
			require.NoError(s, err)
			require.False(s, set)
			return Numbers{"S": 100, "R": 1, "yes": s.buyScripted(s.r, 1), "refused": 1, "final": s.stock(s.r)}
		}},
}

// Check and decrement in one script.
var scripts = []scenario{
	{Entry{ID: "O-11", Title: "Missing key: a comparison with nil", Scheme: "lua-string without a check of the key", Fault: "key-evicted", Breaks: laws(model.Stuck),
		Expected: Numbers{"S": 10, "R": 5, "yes": 0, "errors": 5}},
		func(s *shop) Numbers {
			n := Numbers{"S": 10, "R": 5, "yes": 0}
			for range 5 {
				if s.r.Eval(s.ctx, script, []string{s.key()}).Err() != nil {
					n["errors"]++
				}
			}
			return n
		}},
	{Entry{ID: "O-12", Title: "Missing key treated as zero", Scheme: "lua-string with a default", Fault: "key-evicted", Breaks: laws(model.FalseSoldOut),
		Expected: Numbers{"S": 10, "R": 5, "yes": 0, "refused": 5}},
		func(s *shop) Numbers {
			n := Numbers{"S": 10, "R": 5, "yes": 0}
			for range 5 {
				took, err := s.r.Eval(s.ctx, `if tonumber(redis.call('GET', KEYS[1]) or 0) < 1 then return 0 end redis.call('DECR', KEYS[1]) return 1`, []string{s.key()}).Int64()
				require.NoError(s, err)
				n["yes"], n["refused"] = n["yes"]+took, n["refused"]+1-took
			}
			return n
		}},
	{Entry{ID: "O-13", Title: "Off by one in the guard", Scheme: "lua-string with ≥ 0", Fault: "none", Breaks: laws(model.Oversell, model.NegativePermanent),
		Expected: Numbers{"S": 2, "R": 5, "yes": 3, "final": -1}},
		func(s *shop) Numbers {
			s.load(s.r, 2)
			n := Numbers{"S": 2, "R": 5}
			for range 5 {
				took, err := s.r.Eval(s.ctx, `if tonumber(redis.call('GET', KEYS[1])) >= 0 then redis.call('DECR', KEYS[1]) return 1 end return 0`, []string{s.key()}).Int64()
				require.NoError(s, err)
				n["yes"] += took
			}
			n["final"] = s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-14", Title: "The second write of a script fails, the first stays", Scheme: "lua-limit with its key of another type", Fault: "none", Breaks: laws(model.LostUnits),
		Expected: Numbers{"S": 5, "R": 1, "yes": 0, "errors": 1, "final": 4}},
		func(s *shop) Numbers {
			s.load(s.r, 5)
			require.NoError(s, s.r.Set(s.ctx, s.k("buyers"), "not a set", 0).Err())
			err := s.r.Eval(s.ctx, `redis.call('DECR', KEYS[1]) redis.call('SADD', KEYS[2], 'u1') return 1`, []string{s.key(), s.k("buyers")}).Err()
			require.ErrorContains(s, err, "WRONGTYPE")
			return Numbers{"S": 5, "R": 1, "yes": 0, "errors": 1, "final": s.stock(s.r)}
		}},
	{Entry{ID: "O-15", Title: "Script cache flushed, the call is inside of a pipeline", Scheme: "a hash-only script beside SADD", Fault: "script-flush",
		Expected: Numbers{"S": 5, "R": 1, "final": 5, "buyers in the set": 1}, Says: "oversell if an order follows, or a buyer blocked who has bought nothing"},
		func(s *shop) Numbers {
			_, own := s.own(servers.RedisOptions{})
			s.load(own, 5)
			hash, err := own.ScriptLoad(s.ctx, script).Result()
			require.NoError(s, err)
			require.NoError(s, own.ScriptFlush(s.ctx).Err())
			p := own.Pipeline()
			p.EvalSha(s.ctx, hash, []string{s.key()})
			p.SAdd(s.ctx, s.k("buyers"), "u1")
			_, err = p.Exec(s.ctx)
			require.ErrorContains(s, err, "NOSCRIPT")
			return Numbers{"S": 5, "R": 1, "yes": 0, "final": s.stock(own), "buyers in the set": own.SCard(s.ctx, s.k("buyers")).Val()}
		}},
	{Entry{ID: "O-16", Title: "A hash-only client never loads its script again", Scheme: "lua-string without EVAL", Fault: "redis-restart", Breaks: laws(model.Stuck),
		Expected: Numbers{"S": 10, "R": 10, "yes": 0, "errors": 10}},
		func(s *shop) Numbers {
			server, own := s.own(servers.RedisOptions{Persistence: servers.AOFAlways})
			s.load(own, 10)
			hash, err := own.ScriptLoad(s.ctx, script).Result()
			require.NoError(s, err)
			require.NoError(s, server.Kill(s.ctx))
			require.NoError(s, server.Start(s.ctx))
			again := s.at(server.Addr)
			n := Numbers{"S": 10, "R": 10, "yes": 0, "final": s.stock(again)}
			for range 10 {
				if err := again.EvalSha(s.ctx, hash, []string{s.key()}).Err(); err != nil {
					require.ErrorContains(s, err, "NOSCRIPT")
					n["errors"]++
				}
			}
			return n
		}},
	{Entry{ID: "O-17", Title: "A slow script, BUSY replies, and a script that cannot be killed", Scheme: "lua-string beside a script that loops", Fault: "a script without an end", Breaks: laws(model.Stuck),
		Expected: Numbers{"S": 10, "R": 10, "yes": 0, "errors": 10, "kills refused": 1}},
		func(s *shop) Numbers {
			server, own := s.own(servers.RedisOptions{})
			s.load(own, 10)
			require.NoError(s, own.ConfigSet(s.ctx, "busy-reply-threshold", "5").Err())
			ended := make(chan struct{})
			looping := s.at(server.Addr, func(o *redis.Options) { o.ReadTimeout = time.Minute })
			go func() {
				defer close(ended)
				// Its connection ends with the server.
				_ = looping.Eval(s.ctx, `redis.call('SET', KEYS[1], 'written') while true do end`, []string{s.k("report")}).Err()
			}()
			s.until("BUSY", func() bool {
				err := own.Get(s.ctx, s.key()).Err()
				return err != nil && redis.HasErrorPrefix(err, "BUSY")
			})
			n := Numbers{"S": 10, "R": 10, "yes": 0}
			for range 10 {
				if err := own.Eval(s.ctx, script, []string{s.key()}).Err(); redis.HasErrorPrefix(err, "BUSY") {
					n["errors"]++
				}
			}
			if err := own.ScriptKill(s.ctx).Err(); redis.HasErrorPrefix(err, "UNKILLABLE") {
				n["kills refused"]++
			}
			require.NoError(s, server.Kill(s.ctx))
			<-ended
			return n
		}},
	{Entry{ID: "O-18", Title: "The deduction is executed after the client gave up", Scheme: "lua-string", Fault: "redis-freeze", Breaks: laws(model.LostUnits),
		Expected: Numbers{"S": 10, "R": 5, "yes": 0, "final": 5}, Schedules: []string{"lua-string-redis-freeze-lost-units"}},
		func(s *shop) Numbers {
			server, own := s.own(servers.RedisOptions{})
			s.load(own, 10)
			clients := make([]*redis.Client, 5)
			for i := range clients {
				clients[i] = s.at(server.Addr, func(o *redis.Options) { o.ReadTimeout = 50 * time.Millisecond })
				require.NoError(s, clients[i].Ping(s.ctx).Err())
			}
			require.NoError(s, server.Freeze(s.ctx))
			n := Numbers{"S": 10, "R": 5, "yes": 0}
			for _, c := range clients {
				if c.Eval(s.ctx, script, []string{s.key()}).Err() == nil {
					n["yes"]++
				}
				require.NoError(s, c.Close())
			}
			require.NoError(s, server.Thaw(s.ctx))
			s.until("the buffered commands", func() bool { return s.stock(own) == 5 })
			n["final"] = s.stock(own)
			return n
		}},
	{Entry{ID: "O-19", Title: "The reply for the last unit is lost, the repeat says sold out", Scheme: "lua-string", Fault: "reply-lost, with retries of the library", Breaks: laws(model.LostUnits, model.FalseSoldOut),
		Expected: Numbers{"S": 1, "R": 1, "yes": 0, "final": 0}},
		func(s *shop) Numbers {
			s.loadScheme("lua-string", 1)
			a := s.behind(func(n int) (bool, bool) { return false, n == 1 }, 3)
			outcome, err := s.deduct("lua-string", a, "a", schemes.Config{})
			require.NoError(s, err)
			require.Equal(s, model.SoldOut, outcome)
			return Numbers{"S": 1, "R": 1, "yes": 0, "refused": 1, "final": s.readScheme("lua-string")}
		}},
	{Entry{ID: "O-20", Title: "The record of a request expires before the repeat", Scheme: "lua-journal", Fault: "duplicate-request, later than the record lives", Breaks: laws(model.LostUnits),
		Expected: Numbers{"S": 10, "orders": 1, "final": 8}},
		func(s *shop) Numbers {
			s.loadScheme("lua-journal", 10)
			config := schemes.Config{Record: 30 * time.Millisecond}
			outcome, err := s.deduct("lua-journal", s.r, "r1", config)
			require.NoError(s, err)
			require.Equal(s, model.Sold, outcome)
			s.until("the end of the record", func() bool {
				keys, err := s.r.Keys(s.ctx, "*r1@"+s.sku+"*").Result()
				require.NoError(s, err)
				return len(keys) == 0
			})
			outcome, err = s.deduct("lua-journal", s.r, "r1", config)
			require.NoError(s, err)
			require.Equal(s, model.Sold, outcome)
			// The order is one, because its id is.
			return Numbers{"S": 10, "R": 1, "yes": 1, "orders": 1, "final": s.readScheme("lua-journal")}
		}},
	{Entry{ID: "O-21", Title: "The stock is evicted, and loaded again from a database that lags", Scheme: "lua-string with a cache that fills itself", Fault: "key-evicted", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 10, "yes": 14, "final": 0}, Schedules: []string{"hincrby-key-evicted-oversell"}},
		func(s *shop) Numbers {
			_, own := s.own(servers.RedisOptions{})
			s.load(own, 10)
			s.goods(10)
			yes := s.buyScripted(own, 6)
			for range 2 { // of the six orders, two are written yet
				s.exec(s.db, takeOne, s.sku)
			}
			require.NoError(s, own.ConfigSet(s.ctx, "maxmemory-policy", "allkeys-random").Err())
			require.NoError(s, own.ConfigSet(s.ctx, "maxmemory", "1").Err())
			s.until("the eviction", func() bool { return own.Exists(s.ctx, s.key()).Val() == 0 })
			require.NoError(s, own.ConfigSet(s.ctx, "maxmemory", "0").Err())
			s.load(own, s.one(s.db, readStock, s.sku))
			return Numbers{"S": 10, "R": 24, "yes": yes + s.buyScripted(own, 18), "final": s.stock(own)}
		}},
	{Entry{ID: "O-22", Title: "The stock has a lifetime that ends during the sale", Scheme: "hincrby", Fault: "key-expired", Breaks: laws(model.NegativePermanent, model.FalseSoldOut),
		Expected: Numbers{"S": 10, "R": 1, "yes": 0, "final": -1}},
		func(s *shop) Numbers {
			require.NoError(s, s.r.Set(s.ctx, s.key(), 10, 20*time.Millisecond).Err())
			s.until("the expiry", func() bool { return s.r.Exists(s.ctx, s.key()).Val() == 0 })
			return Numbers{"S": 10, "R": 1, "yes": s.buy(s.r, 1), "refused": 1, "final": s.stock(s.r)}
		}},
	{Entry{ID: "O-23", Title: "Keys in different slots of a cluster", Scheme: "lua-limit without a hash tag", Fault: "a cluster", Breaks: laws(model.Stuck),
		Expected: Numbers{"S": 10, "R": 10, "yes": 0, "errors": 10}},
		func(s *shop) Numbers {
			cluster, err := s.set.StartCluster(s.ctx, 3)
			require.NoError(s, err)
			s.Cleanup(func() { require.NoError(s, cluster.Close()) })
			c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
			s.Cleanup(func() { c.Close() })
			buyers := s.k("buyers")
			require.NotEqual(s, cluster.Slot(s.key()), cluster.Slot(buyers))
			require.NoError(s, c.Set(s.ctx, s.key(), 10, 0).Err())
			n := Numbers{"S": 10, "R": 10, "yes": 0}
			for range 10 {
				if err := c.Eval(s.ctx, `redis.call('DECR', KEYS[1]) redis.call('SADD', KEYS[2], 'u') return 1`, []string{s.key(), buyers}).Err(); err != nil {
					require.ErrorContains(s, err, "CROSSSLOT")
					n["errors"]++
				}
			}
			n["final"], err = c.Get(s.ctx, s.key()).Int64()
			require.NoError(s, err)
			return n
		}},
	{Entry{ID: "O-24", Title: "Negative or zero quantity", Scheme: "lua-string without a check of the quantity", Fault: "none", Breaks: laws(model.PhantomUnits),
		Expected: Numbers{"S": 10, "R": 1, "yes": 1, "final": 15, "yes for nothing": 1, "final then": 10}},
		func(s *shop) Numbers {
			guarded := func(qty int) int64 {
				s.load(s.r, 10)
				took, err := s.r.Eval(s.ctx, `if tonumber(redis.call('GET', KEYS[1])) < tonumber(ARGV[1]) then return 0 end redis.call('DECRBY', KEYS[1], ARGV[1]) return 1`, []string{s.key()}, qty).Int64()
				require.NoError(s, err)
				return took
			}
			n := Numbers{"S": 10, "R": 1, "yes": guarded(-5), "final": s.stock(s.r)}
			n["yes for nothing"], n["final then"] = guarded(0), s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-25", Title: "A cart of several articles, deducted one by one", Scheme: "hincrby for each article", Fault: "client-crash", Breaks: laws(model.LostUnits),
		Expected: Numbers{"S": 1, "R": 1, "yes": 0, "final": 0}, Schedules: []string{"hincrby-crash-lost-units"}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			require.NoError(s, s.r.Set(s.ctx, s.k("b"), 0, 0).Err())
			require.EqualValues(s, 0, s.decr(s.r))
			require.EqualValues(s, -1, s.r.Decr(s.ctx, s.k("b")).Val()) // and the process dies
			return Numbers{"S": 1, "R": 1, "yes": 0, "final": s.stock(s.r)}
		}},
}

// WATCH and MULTI.
var watched = []scenario{
	{Entry{ID: "O-72", Title: "WATCH on one connection, EXEC on another", Scheme: "watch-multi through the pool", Fault: "none", Breaks: laws(model.Oversell, model.NegativePermanent),
		Expected: Numbers{"S": 1, "R": 2, "yes": 2, "final": -1}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			n := Numbers{"S": 1, "R": 2}
			both := func() error {
				_, err := s.r.TxPipelined(s.ctx, func(p redis.Pipeliner) error { return p.Decr(s.ctx, s.key()).Err() })
				return err
			}
			require.NoError(s, s.r.Watch(s.ctx, func(a *redis.Tx) error {
				require.NoError(s, a.Get(s.ctx, s.key()).Err())
				return s.r.Watch(s.ctx, func(b *redis.Tx) error {
					require.NoError(s, b.Get(s.ctx, s.key()).Err())
					for range 2 {
						if both() == nil {
							n["yes"]++
						}
					}
					return nil
				}, s.key())
			}, s.key()))
			n["final"] = s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-73", Title: "An aborted EXEC is reported as sold out", Scheme: "watch-multi without retry", Fault: "none", Breaks: laws(model.FalseSoldOut),
		Expected: Numbers{"S": 10, "R": 10, "yes": 1, "refused": 9, "final": 9}},
		func(s *shop) Numbers {
			s.load(s.r, 10)
			conns := make([]*redis.Conn, 10)
			for i := range conns {
				conns[i] = s.r.Conn()
				defer conns[i].Close()
				require.NoError(s, conns[i].Do(s.ctx, "WATCH", s.key()).Err())
				require.NoError(s, conns[i].Get(s.ctx, s.key()).Err())
			}
			n := Numbers{"S": 10, "R": 10}
			for _, c := range conns {
				switch _, err := c.TxPipelined(s.ctx, func(p redis.Pipeliner) error { return p.Decr(s.ctx, s.key()).Err() }); err {
				case nil:
					n["yes"]++
				case redis.TxFailedErr:
					n["refused"]++
				default:
					require.NoError(s, err)
				}
			}
			n["final"] = s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-74", Title: "MULTI does not roll back", Scheme: "MULTI with a key of another type", Fault: "none", Breaks: laws(model.LostUnits),
		Expected: Numbers{"S": 5, "R": 1, "errors": 1, "final": 4}},
		func(s *shop) Numbers {
			s.load(s.r, 5)
			require.NoError(s, s.r.Set(s.ctx, s.k("buyers"), "not a set", 0).Err())
			_, err := s.r.TxPipelined(s.ctx, func(p redis.Pipeliner) error {
				p.Decr(s.ctx, s.key())
				p.SAdd(s.ctx, s.k("buyers"), "u1")
				return nil
			})
			require.ErrorContains(s, err, "WRONGTYPE")
			return Numbers{"S": 5, "R": 1, "yes": 0, "errors": 1, "final": s.stock(s.r)}
		}},
}

// scenarios are all, in order.
func scenarios() []scenario {
	all := slices.Concat(giveBack, scripts, locks, databases, operations, watched, notShown)
	slices.SortFunc(all, func(a, b scenario) int { return compareIDs(a.ID, b.ID) })
	return all
}
