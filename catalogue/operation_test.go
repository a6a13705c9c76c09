package catalogue

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/live/servers"
	"stockproof/model"
)

// aofSize is how long the append-only file is, in bytes.
func (s *shop) aofSize(r *redis.Client) int64 {
	info, err := r.InfoMap(s.ctx, "persistence").Result()
	require.NoError(s, err)
	var n int64
	_, err = fmt.Sscan(info["Persistence"]["aof_current_size"], &n)
	require.NoError(s, err)
	return n
}

// Orders, cancels, jobs, and those who run the sale.
var operations = []scenario{
	{Entry{ID: "O-52", Title: "A preload overwrites a running sale", Scheme: "hincrby, lua-string", Fault: "stock-reloaded", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 10, "yes": 16, "final": 0}, Schedules: []string{"hincrby-stock-reloaded-oversell", "lua-string-stock-reloaded-oversell"}},
		func(s *shop) Numbers {
			s.load(s.r, 10)
			yes := s.buyScripted(s.r, 6)
			s.load(s.r, 10)
			return Numbers{"S": 10, "R": 20, "yes": yes + s.buyScripted(s.r, 14), "final": s.stock(s.r)}
		}},
	{Entry{ID: "O-53", Title: "A crash between the deduction in Redis and the order", Scheme: "lua-lock", Fault: "client-crash", Breaks: laws(model.LostUnits),
		Expected: Numbers{"S": 10, "R": 1, "orders": 0, "final": 9}, Schedules: []string{"lua-lock-crash-lost-units", "degrade-crash-lost-units"}},
		func(s *shop) Numbers {
			s.load(s.r, 10)
			require.EqualValues(s, 1, s.buyScripted(s.r, 1)) // and the process dies
			return Numbers{"S": 10, "R": 1, "yes": 0, "orders": s.one(s.db, countOrders, s.sku), "final": s.stock(s.r)}
		}},
	{Entry{ID: "O-54", Title: "Published, acknowledged too late, given back, and delivered", Scheme: "stream-order with give-back on error", Fault: "reply-lost", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 2, "orders": 2}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			n := Numbers{"S": 1, "R": 2}
			publish := func(r *redis.Client, buyer string) error {
				return r.XAdd(s.ctx, &redis.XAddArgs{Stream: s.k("orders"), Values: []string{"buyer", buyer}}).Err()
			}
			require.EqualValues(s, 1, s.buyScripted(s.r, 1))
			require.Error(s, publish(s.behind(func(int) (bool, bool) { return false, true }, -1), "a"))
			s.incr(s.r, 1)
			if s.buyScripted(s.r, 1) == 1 {
				require.NoError(s, publish(s.r, "b"))
				n["yes"]++
			}
			messages, err := s.r.XRange(s.ctx, s.k("orders"), "-", "+").Result()
			require.NoError(s, err)
			for _, m := range messages {
				s.order(s.db, m.ID, fmt.Sprint(m.Values["buyer"]))
			}
			n["orders"], n["final"] = s.one(s.db, countOrders, s.sku), s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-55", Title: "A message is delivered twice", Scheme: "stream-order-blind, outbox", Fault: "client-crash of the consumer", Breaks: laws(model.DoubleSale),
		Expected: Numbers{"S": 10, "R": 1, "orders": 2, "final": 8}, Schedules: []string{"stream-order-blind-crash-double-sale", "outbox-crash-double-sale"}},
		func(s *shop) Numbers {
			s.goods(10)
			stream := s.k("orders")
			require.NoError(s, s.r.XGroupCreateMkStream(s.ctx, stream, "g", "0").Err())
			require.NoError(s, s.r.XAdd(s.ctx, &redis.XAddArgs{Stream: stream, Values: []string{"buyer", "a"}}).Err())
			handle := func(delivery int, m redis.XMessage) {
				s.order(s.db, fmt.Sprint(m.ID, delivery), "a")
				s.exec(s.db, takeOne, s.sku)
			}
			read, err := s.r.XReadGroup(s.ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "one", Streams: []string{stream, ">"}, Count: 1}).Result()
			require.NoError(s, err)
			handle(1, read[0].Messages[0]) // and it dies before XACK
			again, _, err := s.r.XAutoClaim(s.ctx, &redis.XAutoClaimArgs{Stream: stream, Group: "g", Consumer: "two", Start: "0"}).Result()
			require.NoError(s, err)
			for _, m := range again {
				handle(2, m)
			}
			n := Numbers{"S": 10, "R": 1, "yes": 1, "orders": s.one(s.db, countOrders, s.sku), "final": s.one(s.db, readStock, s.sku)}
			n["mine"] = n["orders"]
			return n
		}},
	{Entry{ID: "O-56", Title: "A cancel for want of payment races with the payment", Scheme: "reserve-confirm", Fault: "client-pause", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 2, "yes": 2}, Schedules: []string{"reserve-confirm-pause-oversell"}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			n := Numbers{"S": 1, "R": 2, "yes": s.buyScripted(s.r, 1)}
			s.incr(s.r, 1) // the timeout; and a's payment comes through all the same
			n["yes"] += s.buyScripted(s.r, 1)
			n["final"] = s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-57", Title: "A cancel is applied twice", Scheme: "a restock without an id", Fault: "none", Breaks: laws(model.PhantomUnits),
		Expected: Numbers{"S": 1, "R": 1, "final": 2}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			require.EqualValues(s, 1, s.buyScripted(s.r, 1))
			s.incr(s.r, 1) // the buyer
			s.incr(s.r, 1) // the timer
			return Numbers{"S": 1, "R": 1, "yes": 0, "final": s.stock(s.r)}
		}},
	{Entry{ID: "O-58", Title: "A retry around the whole purchase", Scheme: "lua-lock inside of a retry", Fault: "the database fails twice", Breaks: laws(model.LostUnits),
		Expected: Numbers{"S": 10, "R": 1, "orders": 1, "final": 7}},
		func(s *shop) Numbers {
			s.load(s.r, 10)
			db := s.sqlBehind(func(n int) (bool, bool) { return n <= 2, false })
			n := Numbers{"S": 10, "R": 1}
			for range 3 {
				require.EqualValues(s, 1, s.buyScripted(s.r, 1))
				if _, err := db.ExecContext(s.ctx, "INSERT INTO orders VALUES ($1, $2, 'a', 1)", "a@"+s.sku, s.sku); err == nil {
					n["yes"]++
				}
			}
			n["orders"], n["final"] = s.one(s.db, countOrders, s.sku), s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-59", Title: "Redis restarts from an old snapshot", Scheme: "hincrby, lua-string", Fault: "redis-restart(rdb)", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 10, "yes": 16, "final": 0}, Schedules: []string{"lua-string-redis-restart-rdb-oversell", "hincrby-redis-restart-rdb-oversell"}},
		func(s *shop) Numbers {
			server, own := s.own(servers.RedisOptions{})
			s.load(own, 10)
			require.NoError(s, own.Save(s.ctx).Err())
			yes := s.buyScripted(own, 6)
			require.NoError(s, server.Kill(s.ctx))
			require.NoError(s, server.Start(s.ctx))
			again := s.at(server.Addr)
			return Numbers{"S": 10, "R": 20, "yes": yes + s.buyScripted(again, 14), "final": s.stock(again)}
		}},
	{Entry{ID: "O-60", Title: "A failover to a replica that lags", Scheme: "hincrby, lua-string, lua-lock", Fault: "redis-failover(async)", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 10, "yes": 17, "old primary after it has joined again": 10}, Schedules: []string{"lua-string-redis-failover-async-oversell"}},
		func(s *shop) Numbers {
			server, old := s.own(servers.RedisOptions{Replica: true})
			next := s.at(server.Replica.Addr)
			s.load(old, 10)
			require.NoError(s, old.Wait(s.ctx, 1, 10*time.Second).Err())
			require.NoError(s, server.Replica.CutLink(s.ctx, server.Node))
			yes := s.buyScripted(old, 7)
			require.NoError(s, server.Replica.Promote(s.ctx))
			require.NoError(s, server.Rejoin(s.ctx, server.Replica))
			n := Numbers{"S": 10, "R": 20, "old primary after it has joined again": s.stock(s.at(server.Addr))}
			n["yes"], n["final"] = yes+s.buyScripted(next, 13), s.stock(next)
			return n
		}},
	{Entry{ID: "O-61", Title: "A power cut with one sync a second", Scheme: "hincrby, lua-string", Fault: "redis-restart(aof-everysec)", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 10, "yes": 13, "final": 0}, Schedules: []string{"lua-string-redis-restart-aof-everysec-oversell"}},
		func(s *shop) Numbers {
			server, own := s.own(servers.RedisOptions{Persistence: servers.AOFAlways})
			s.load(own, 10)
			yes := s.buyScripted(own, 3)
			kept := s.aofSize(own)
			yes += s.buyScripted(own, 3)
			// What a power cut takes is what was not synced; a killed process alone loses none of it.
			lost := s.aofSize(own) - kept
			require.Positive(s, lost)
			require.NoError(s, server.Restart(s.ctx, fmt.Sprintf(`f=$(ls appendonlydir/*.incr.aof appendonly.aof 2>/dev/null | tail -n 1); n=$(wc -c < "$f"); truncate -s $((n - %d)) "$f"`, lost)))
			again := s.at(server.Addr)
			require.EqualValues(s, 7, s.stock(again))
			return Numbers{"S": 10, "R": 20, "yes": yes + s.buyScripted(again, 14), "final": s.stock(again)}
		}},
	{Entry{ID: "O-62", Title: "Writes are accepted for a while after the replica has vanished", Scheme: "hincrby, lua-string", Fault: "redis-freeze of the replica, min-replicas-to-write",
		Reported: Numbers{"S": 10, "yes": 14}, Says: "oversell, then stuck",
		Expected: Numbers{"S": 10, "sold in the window": 4, "refused for want of replicas": 1, "yes": 10, "final": 0}, Schedules: []string{"lua-string-redis-failover-min-replicas-oversell"},
		Otherwise: "The window (of one second here, not three) and the refusals are as reported. The oversell to 14 is not: a replica that was only frozen reads what waits for it when it goes on, and takes over with all four sales. It takes one whose link is cut, as the schedule has it"},
		func(s *shop) Numbers {
			server, old := s.own(servers.RedisOptions{Replica: true, Settings: map[string]string{"min-replicas-to-write": "1", "min-replicas-max-lag": "1"}})
			s.until("the replica is counted", func() bool { return old.Set(s.ctx, s.key(), 10, 0).Err() == nil })
			require.NoError(s, old.Wait(s.ctx, 1, 10*time.Second).Err())
			require.NoError(s, server.Replica.Freeze(s.ctx))
			n := Numbers{"S": 10, "R": 20}
			for n["sold in the window"] < 4 { // what is beyond the second is an error here
				n["sold in the window"] += s.buyScripted(old, 1)
			}
			s.until("refusals", func() bool { return redis.HasErrorPrefix(old.Incr(s.ctx, s.k("other")).Err(), "NOREPLICAS") })
			n["refused for want of replicas"]++
			require.NoError(s, server.Replica.Thaw(s.ctx))
			next := s.at(server.Replica.Addr)
			s.until("what waited for it", func() bool { return s.stock(next) == 6 })
			require.NoError(s, server.Replica.Promote(s.ctx))
			require.NoError(s, next.ConfigSet(s.ctx, "min-replicas-to-write", "0").Err())
			n["yes"], n["final"] = n["sold in the window"]+s.buyScripted(next, 16), s.stock(next)
			return n
		}},
	{Entry{ID: "O-63", Title: "Both sides of a partition sell", Scheme: "hincrby, lua-string", Fault: "redis-failover", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 5, "yes": 10}, Schedules: []string{"lua-string-redis-failover-async-oversell"}},
		func(s *shop) Numbers {
			server, old := s.own(servers.RedisOptions{Replica: true})
			next := s.at(server.Replica.Addr)
			s.load(old, 5)
			require.NoError(s, old.Wait(s.ctx, 1, 10*time.Second).Err())
			require.NoError(s, server.Replica.CutLink(s.ctx, server.Node))
			require.NoError(s, server.Replica.Promote(s.ctx))
			n := Numbers{"S": 5, "R": 12, "yes": s.buyScripted(old, 6) + s.buyScripted(next, 6)}
			n["final"] = s.stock(next)
			return n
		}},
	{Entry{ID: "O-64", Title: "A local “sold out” mark is never cleared", Scheme: "lua-string behind a mark in the process", Fault: "none", Breaks: laws(model.FalseSoldOut),
		Expected: Numbers{"back": 1, "R": 1, "yes": 0, "final": 1}},
		func(s *shop) Numbers {
			s.load(s.r, 0)
			gone := s.buyScripted(s.r, 1) == 0 // the mark of node 1
			s.incr(s.r, 1)
			n := Numbers{"S": 0, "back": 1, "R": 1}
			if gone {
				n["refused"]++
			} else {
				n["yes"] += s.buyScripted(s.r, 1)
			}
			n["yes"] += 0
			n["final"] = s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-65", Title: "A reconciliation overwrites a living counter", Scheme: "reconcile-naive", Fault: "reconcile-overlap", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 10, "yes": 13, "final": 0}, Schedules: []string{"reconcile-naive-oversell", "lua-lock-reconcile-overlap-oversell"}},
		func(s *shop) Numbers {
			s.load(s.r, 10)
			s.goods(10)
			yes := s.buyScripted(s.r, 6)
			for range 3 {
				s.exec(s.db, takeOne, s.sku)
			}
			s.load(s.r, s.one(s.db, readStock, s.sku))
			return Numbers{"S": 10, "R": 20, "yes": yes + s.buyScripted(s.r, 14), "final": s.stock(s.r)}
		}},
	{Entry{ID: "O-66", Title: "Degraded to a database that lags", Scheme: "degrade", Fault: "redis-restart", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 10, "yes": 16}, Schedules: []string{"degrade-request-delayed-oversell"}},
		func(s *shop) Numbers {
			server, own := s.own(servers.RedisOptions{Persistence: servers.AOFAlways})
			s.load(own, 10)
			s.goods(10)
			yes := s.buyScripted(own, 6)
			for range 4 { // of the six
				s.exec(s.db, takeOne, s.sku)
			}
			require.NoError(s, server.Kill(s.ctx))
			for range 8 {
				yes += s.exec(s.db, takeOne, s.sku)
			}
			require.NoError(s, server.Start(s.ctx))
			again := s.at(server.Addr)
			return Numbers{"S": 10, "R": 22, "yes": yes + s.buyScripted(again, 8), "final": s.stock(again)}
		}},
	{Entry{ID: "O-67", Title: "A segment is empty while others have stock", Scheme: "segmented", Fault: "none", Breaks: laws(model.FalseSoldOut),
		Expected: Numbers{"S": 2, "R": 2, "yes": 1, "final": 1}, Schedules: []string{"segmented-false-sold-out"}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			require.NoError(s, s.r.Set(s.ctx, s.k("second"), 1, 0).Err())
			yes := s.buyScripted(s.r, 2) // both are of the first segment
			second, err := s.r.Get(s.ctx, s.k("second")).Int64()
			require.NoError(s, err)
			return Numbers{"S": 2, "R": 2, "yes": yes, "refused": 2 - yes, "final": s.stock(s.r) + second}
		}},
	{Entry{ID: "O-68", Title: "A token is popped and nobody served; tokens are loaded twice", Scheme: "token-list", Fault: "reply-lost; stock-reloaded", Breaks: laws(model.LostUnits),
		Expected: Numbers{"S": 3, "R": 1, "yes": 0, "final": 2, "tokens loaded twice": 6, "yes then": 6}},
		func(s *shop) Numbers {
			loader := func() { require.NoError(s, s.r.RPush(s.ctx, s.key(), 1, 2, 3).Err()) }
			length := func() int64 { return s.r.LLen(s.ctx, s.key()).Val() }
			loader()
			require.Error(s, s.behind(func(int) (bool, bool) { return false, true }, -1).LPop(s.ctx, s.key()).Err())
			n := Numbers{"S": 3, "R": 1, "yes": 0, "final": length()}
			require.NoError(s, s.r.Del(s.ctx, s.key()).Err())
			loader()
			loader()
			n["tokens loaded twice"] = length()
			for s.r.LPop(s.ctx, s.key()).Err() == nil {
				n["yes then"]++
			}
			return n
		}},
	{Entry{ID: "O-69", Title: "The check for duplicates comes after the deduction", Scheme: "hincrby, lua-lock", Fault: "duplicate-request", Breaks: laws(model.LostUnits),
		Expected: Numbers{"S": 5, "R": 2, "yes": 1, "final": 3}, Schedules: []string{"lua-lock-submitted-twice-lost-units"}},
		func(s *shop) Numbers {
			s.load(s.r, 5)
			n := Numbers{"S": 5, "R": 2}
			for range 2 {
				require.EqualValues(s, 1, s.buyScripted(s.r, 1))
				if _, err := s.db.ExecContext(s.ctx, "INSERT INTO orders VALUES ($1, $2, 'u1', 1)", "u1@"+s.sku, s.sku); err == nil {
					n["yes"]++
				}
			}
			n["final"] = s.stock(s.r)
			return n
		}},
	{Entry{ID: "O-70", Title: "The order first, Redis second", Scheme: "an order, then lua-string", Fault: "client-crash", Breaks: laws(model.Oversell),
		Expected: Numbers{"S": 1, "R": 2, "orders": 2}},
		func(s *shop) Numbers {
			s.load(s.r, 1)
			s.order(s.db, "a", "a") // and the process dies
			s.order(s.db, "b", "b")
			return Numbers{"S": 1, "R": 2, "yes": s.buyScripted(s.r, 1), "orders": s.one(s.db, countOrders, s.sku), "final": s.stock(s.r)}
		}},
	{Entry{ID: "O-71", Title: "A double click without a request id", Scheme: "all without an id of the request", Fault: "duplicate-request", Breaks: laws(model.DoubleSale),
		Expected: Numbers{"S": 10, "yes": 2}, Schedules: []string{"lua-string-submitted-twice-double-sale"}},
		func(s *shop) Numbers {
			s.load(s.r, 10)
			n := Numbers{"S": 10, "R": 2, "yes": s.buyScripted(s.r, 2), "final": s.stock(s.r)}
			n["mine"] = n["yes"]
			return n
		}},
}

// notShown are those that are not run, with the reason.
var notShown = []scenario{
	{Entry: Entry{ID: "O-34", Title: "The clock of the Redis host jumps", Scheme: "lock", Fault: "clock jump",
		NotShown: "it takes setting the clock of the machine, which everything else on it shares; what follows from it, a lease that ends while its holder is inside, is O-26"}},
}
